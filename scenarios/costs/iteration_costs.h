#pragma once

#include <vector>

#include "scenarios/costs/work.h"
#include "scenarios/language/cluster.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"

/// What one iteration of a job costs under a plan on a cluster, piece by piece, with every GPU and link healthy. The
/// evaluator and the simulator put the pieces together; neither knows a transformer.
namespace headway::scenarios {

/// Costs of one virtual stage on one GPU type, for one micro-batch.
struct VirtualStageCosts {
    Work forward;
    Work backward;        ///< whole; includes recomputation
    Work backward_input;  ///< zero-bubble split; input + weight = backward
    Work backward_weight;
};

/// A message between two neighbouring workers: per rank, since each rank of a worker sends its own part in parallel.
struct MessageCosts {
    Bytes bytes_per_rank;
    Duration inside_node;   ///< contention-free time over the node's fabric
    Duration across_nodes;  ///< contention-free time over the NICs (the node's other ranks sending too)
    Duration overhead;      ///< host and protocol time included in both
};

/// Work at the end (or start) of the iteration, per stage. Collectives are contention-free, over the ranks that hold
/// the same parameters of the stage (replicas and context ranks), the node's other groups running theirs.
struct StageCosts {
    std::vector<Duration>
        reduce_gradients;  ///< [virtual_pipeline] all-reduce, or reduce-scatter with a distributed optimizer
    std::vector<Duration>
        reduce_last_bucket;  ///< [virtual_pipeline] part that can only start after the chunk's last backward
    std::vector<Bytes> reduce_bytes_per_rank;   ///< [virtual_pipeline] gradient bytes a rank contributes
    std::vector<Duration> gather_parameters;    ///< [virtual_pipeline] 0 without a distributed optimizer
    std::vector<Duration> gather_first_bucket;  ///< [virtual_pipeline] part that the chunk's first forward waits for
    std::vector<Bytes> gather_bytes_per_rank;   ///< [virtual_pipeline] parameter bytes of a rank, gathered
    Duration reduce_tied_embedding;             ///< 0 where the stage does not hold it
    Bytes tied_bytes_per_rank;
    Work optimizer;
};

struct IterationCosts {
    /// [gpu type index][virtual stage]; gpu type index as in `gpu_types_of`. Empty for a type that the plan does not
    /// use.
    std::vector<std::vector<VirtualStageCosts>> virtual_stages;
    MessageCosts activation;         ///< forward; gradient messages have the same size
    std::vector<StageCosts> stages;  ///< [pipeline]
    Flops model_flops;               ///< per iteration, whole job, without recomputation: the numerator of MFU
    Flops hardware_flops;            ///< with recomputation: what Narayanan et al. 2021 print as TFLOP/s per GPU
    FlopsPerSecond peak;             ///< sum over the plan's GPUs, at the job's precision: the denominator of MFU
};

/// Distinct GPU types of the cluster, in order of first appearance, and the index of every node group's type.
std::vector<GpuType> gpu_types_of(const Cluster& cluster);
int gpu_type_index(const Cluster& cluster, int gpu);

/// Throws std::invalid_argument for a plan that does not fit the job or the cluster.
IterationCosts iteration_costs(const Job& job, const Cluster& cluster, const Plan& plan);

}  // namespace headway::scenarios
