#pragma once

#include <vector>

#include "scenarios/costs/memory.h"
#include "scenarios/language/cluster.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"

namespace headway::policies {

/// Micro-batches of a replica from which on one more is not in flight any more: what the schedule holds at its peak is
/// the same for `micro_batches` and for the number returned, which is never more.
int micro_batches_in_flight(const scenarios::Layout& layout, int micro_batches);

/// Memory of plans of one layout, as scenarios::worker_memory has it, for a search that looks at thousands.
class PlanMemory {
  public:
    /// `job` and `memory_of_gpu` (scenarios::memory_of_gpus) outlive it.
    PlanMemory(const scenarios::Job& job, const scenarios::Layout& layout,
               const std::vector<scenarios::Bytes>& memory_of_gpu);

    /// The worker that leaves its GPU least room, or lacks most.
    struct Fullest {
        int stage = 0;
        int gpu = 0;
        scenarios::Bytes needed, available;
        double share = 0.0;  ///< needed over available
    };
    Fullest fullest(const scenarios::Plan& plan);

    /// Layers that fit on a worker's smallest GPU, spread evenly over its chunks, when its replica trains up to
    /// `most_micro_batches`; 0 where not even one a chunk does.
    int most_layers(const scenarios::Plan& plan, int most_micro_batches, int replica, int stage);

  private:
    scenarios::Bytes needed(const scenarios::Plan& plan, int replica, int stage);

    const scenarios::Layout layout_;
    const std::vector<scenarios::Bytes>& memory_of_gpu_;
    scenarios::MemoryTable table_;
    std::vector<scenarios::Bytes> one_, two_;  ///< [pipeline] with so many layers a chunk; 0: not known
    int probed_ = 0;                           ///< micro-batches they hold for
};

}  // namespace headway::policies
