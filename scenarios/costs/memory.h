#pragma once

#include <map>
#include <span>
#include <vector>

#include "scenarios/language/cluster.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"

namespace headway::scenarios {

/// Memory of the fullest rank of one worker or stage, exactly as allocated by the described training stack.
struct StageMemory {
    Bytes parameters;  ///< in the working precision
    Bytes gradients;
    Bytes optimizer;  ///< fp32 master weights and Adam moments, sharded with a distributed optimizer
    Bytes
        activations;  ///< of all micro-batches in flight under the schedule (Korthikanti et al. 2022, sections 4 and 5)
    Bytes reserve;    ///< CUDA context, communicator buffers, workspace, the layer that is being recomputed
    Bytes total() const { return parameters + gradients + optimizer + activations + reserve; }
    bool operator==(const StageMemory&) const = default;
};

/// Activations that one rank keeps of one layer and micro-batch until its backward. Korthikanti et al. 2022, table 2,
/// for any shape: with t tensor ranks and 16-bit values s b h (10 + 24/t + 5 a s / (h t)), the first part also over t
/// with sequence parallelism, the last gone with selective recomputation or fused attention, 2 s b h with full
/// recomputation.
Bytes layer_activations(const Job& job, const Layout& layout);

/// Memory of the workers of one job and layout, by what a plan gives them. Remembers what schedules hold, so that
/// many plans can be checked. Not thread-safe.
class MemoryTable {
  public:
    /// `job` outlives it.
    MemoryTable(const Job& job, const Layout& layout);

    /// `plan` has this layout and fits the job (not checked here). Throws std::invalid_argument where its schedule
    /// cannot be built.
    StageMemory worker(const Plan& plan, int replica, int stage);
    /// The same for `layers` [virtual_pipeline] of the worker's chunks and its replica's micro-batches.
    StageMemory worker(int stage, std::span<const int> layers, int micro_batches);

  private:
    std::span<const int> in_flight(int stage, int micro_batches, std::span<const double> kept);

    const Job& job_;
    Layout layout_;
    double shards_ = 1.0, weight_ = 0.0, layer_bytes_ = 0.0, embedding_bytes_ = 0.0, head_bytes_ = 0.0;
    Bytes reserve_;
    std::vector<std::vector<int>> held_;  // [stage][micro-batches] of schedules with one chunk; -1 not known
    std::map<std::vector<double>, std::vector<int>> held_by_chunk_;  // by stage, micro-batches and bytes of each chunk
    std::vector<int> layers_;
    std::vector<double> kept_;
};

/// [workers]. Throws std::invalid_argument for a plan whose schedule cannot be built.
std::vector<StageMemory> worker_memory(const Job& job, const Plan& plan);
/// [pipeline] the fullest worker of each stage: replicas differ in layers and in micro-batches in flight.
std::vector<StageMemory> stage_memory(const Job& job, const Plan& plan);

struct MemoryShortage {
    int stage = 0;
    int gpu = 0;  ///< first GPU of the stage that is too small for what its own worker needs
    Bytes needed;
    Bytes available;
};

/// Empty when the plan fits: every GPU holds what its own worker needs. At most one entry a stage.
std::vector<MemoryShortage> memory_shortages(const Job& job, const Cluster& cluster, const Plan& plan);

/// [GPUs] memory of each GPU of the cluster.
std::vector<Bytes> memory_of_gpus(const Cluster& cluster);
/// Whether memory_shortages would be empty: for those who check many plans.
bool fits_memory(MemoryTable& table, std::span<const Bytes> memory_of_gpu, const Plan& plan);

}  // namespace headway::scenarios
