#pragma once

#include <cstddef>
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
    Work optimizer;  ///< of its parameters, once an iteration; StageCosts::optimizer comes on top
};

/// A message between two neighbouring workers: per rank, since each rank of a worker sends its own part in parallel. On
/// several kinds of nodes the slowest kind counts.
struct MessageCosts {
    Bytes bytes_per_rank;
    Duration inside_node;   ///< contention-free time over the node's fabric
    Duration across_nodes;  ///< contention-free time over the NICs (the node's other ranks sending too)
    Duration overhead;      ///< host and protocol time included in both
};

/// Work at the end (or start) of the iteration, per stage. Collectives are contention-free, over the ranks that hold
/// the same parameters of the stage (replicas and context ranks), the node's other groups running theirs; on several
/// kinds of nodes they take the slowest kind.
///
/// Where replicas split the model differently, a layer's gradient is reduced between the ranks that hold it, wherever
/// they stand. Every layer is still held by as many ranks, so rings are as wide, and a rank takes part in the rings of
/// all its layers, one after the other: a stage's reduction lasts as long as that of its fullest cell, and joins all
/// replicas of the stage. That a layer near the border of two stages also waits for a neighbouring stage of another
/// replica is left out: the optimizer waits for all stages anyway.
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
    Work optimizer;  ///< what does not depend on the GPU and its layers: host, interference of overlapped collectives
};

/// What operations take on one GPU over what the cost model says: of jobs with measured times.
struct GpuScale {
    double forward = 1.0;
    double backward = 1.0;
    double send_activation = 1.0;  ///< of messages that this GPU sends
    double send_gradient = 1.0;
    bool operator==(const GpuScale&) const = default;
};

struct IterationCosts {
    /// [gpu type index][class]: the distinct (virtual stage, layers) of the plan; gpu type index as in `gpu_types_of`.
    /// Empty for a type that the plan does not use. Look up through `class_of` or `of`.
    std::vector<std::vector<VirtualStageCosts>> virtual_stages;
    /// [data * virtual_stages] like Plan::layers_of_cell; empty where all replicas split the model alike: then a class
    /// is a virtual stage.
    std::vector<int> class_of_cell;
    /// [cluster GPUs]; empty: all 1. Of jobs with measured times the healthy scales (measured_scales.h): StepTimer
    /// applies them to the pieces above. Such a job has no collectives of its own: Job::measured's rest of the step, as
    /// fixed work of the optimizer, stands for them under every plan.
    std::vector<GpuScale> gpu_scales;
    MessageCosts activation;         ///< forward; gradient messages have the same size
    std::vector<StageCosts> stages;  ///< [pipeline]
    Flops model_flops;               ///< per iteration, whole job, without recomputation: the numerator of MFU
    Flops hardware_flops;            ///< with recomputation: what Narayanan et al. 2021 print as TFLOP/s per GPU
    FlopsPerSecond peak;             ///< sum over the plan's GPUs, at the job's precision: the denominator of MFU

    std::size_t class_of(const Layout& layout, int replica, int virtual_stage) const {
        if (class_of_cell.empty()) return static_cast<std::size_t>(virtual_stage);
        return static_cast<std::size_t>(
            class_of_cell[static_cast<std::size_t>(replica * layout.virtual_stages() + virtual_stage)]);
    }
    const VirtualStageCosts& of(int type, const Layout& layout, int replica, int virtual_stage) const {
        return virtual_stages[static_cast<std::size_t>(type)][class_of(layout, replica, virtual_stage)];
    }
};

/// Distinct GPU types of the cluster, in order of first appearance.
std::vector<GpuType> gpu_types_of(const Cluster& cluster);
/// Index into gpu_types_of of a GPU's type, and of the type of every node group.
int gpu_type_index(const Cluster& cluster, int gpu);
std::vector<int> gpu_types_of_groups(const Cluster& cluster);

/// For many plans of one job, see layout_costs.h. Throws std::invalid_argument for a plan that does not fit the job or
/// the cluster.
IterationCosts iteration_costs(const Job& job, const Cluster& cluster, const Plan& plan);

}  // namespace headway::scenarios
