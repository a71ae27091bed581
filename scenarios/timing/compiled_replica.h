#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scenarios/timing/task_graph.h"

namespace headway::scenarios {

/// One replica as a straight list of operations `slot[out] = max(slot[a], slot[b]) + duration`, with as few slots as
/// values are alive at once, so that they stay in the nearest cache. Evaluates several replicas at a time, one in each
/// lane.
class CompiledReplica {
  public:
    /// Replicas evaluated together; what fits into one vector register.
    static constexpr int kLanes = 4;

    /// Without `delays` every delay counts as zero and costs nothing.
    CompiledReplica(const Layout& layout, int micro_batches, bool delays);

    int micro_batches() const { return micro_batches_; }

    /// Results in nanoseconds from the start of the iteration, for one replica.
    struct Ends {
        std::vector<std::int64_t> stage;     ///< [pipeline] the worker's last operation has ended
        std::vector<std::int64_t> gradient;  ///< [pipeline * virtual_pipeline] the chunk's gradient is complete
        std::vector<std::int64_t> buckets;   ///< [same] the chunk's last backward starts; only with overlap_grad_reduce
    };

    /// Evaluates the given replicas (1..kLanes of them) under `times`. `first_micro_batch` [replicas] is where each
    /// one's factors start in StepTimes::micro_batch_factor.
    void evaluate(const StepTimes& times, std::span<const int> replicas, std::span<const std::size_t> first_micro_batch,
                  std::span<Ends* const> ends);

  private:
    struct Operation {
        std::uint32_t a, b, out, duration;
    };
    /// Durations are looked up by kind and place in the pipeline; entry 0 is zero.
    std::uint32_t duration_index(const Task& task) const;
    void fill_durations(const StepTimes& times, int replica, int lane, int lanes);
    template <class Lane, bool kFactors>
    void run(const StepTimes& times, std::span<const std::size_t> first_micro_batch);
    void lower(const ReplicaGraph& replica, bool delays);

    Layout layout_;
    int micro_batches_;
    std::size_t cells_;
    std::vector<Operation> operations_;
    std::vector<std::int32_t> micro_batch_of_;  // [operations] of a compute; -1 elsewhere
    std::uint32_t slots_ = 1;                   // slot 0 is the start of the iteration
    std::vector<std::uint32_t> stage_slot_, gradient_slot_, buckets_slot_;
    std::vector<std::int64_t> durations_, values_;  // [index][lane]
};

}  // namespace headway::scenarios
