#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "scenarios/costs/layout_costs.h"
#include "scenarios/costs/memory.h"
#include "scenarios/timing/evaluator.h"
#include "scenarios/timing/replica_programs.h"
#include "scenarios/timing/step_times.h"

namespace headway::policies {

/// Time and memory of all plans that have one layout on given GPUs, whatever their layers and micro-batches. After the
/// first look at conditions a plan costs O(cells) and its evaluation. Not thread-safe.
class LayoutPredictor {
  public:
    /// What serves all placements of a layout.
    struct Shared {
        std::shared_ptr<scenarios::ReplicaPrograms> programs;
        std::shared_ptr<scenarios::MemoryTable> memory;
    };
    /// `job`, `cluster` and `memory_of_gpu` [GPUs of the cluster] outlive it. `plan` gives layout and GPUs, and fits
    /// (plan_check.h).
    LayoutPredictor(const scenarios::Job& job, const scenarios::Cluster& cluster,
                    std::span<const scenarios::Bytes> memory_of_gpu, const scenarios::Plan& plan, Shared shared);

    const scenarios::Layout& layout() const { return costs_.layout(); }
    const std::vector<int>& gpu_of_rank() const { return costs_.gpu_of_rank(); }

    /// What follows is under these conditions; delays of hops count where they are as many as the layout's. O(ranks)
    /// where they are others than before.
    void set(const scenarios::Conditions& conditions);

    scenarios::Duration iteration(const scenarios::Plan& plan);
    scenarios::Evaluation evaluate(const scenarios::Plan& plan);
    /// [data] from the first forward to the last backward of a replica, if it trained `micro_batches` [data], which
    /// need not add up to the job's.
    std::vector<scenarios::Duration> replica_times(const scenarios::Plan& plan, std::span<const int> micro_batches);

    /// Two counts of micro-batches around this one, whose times cost least to work out.
    std::pair<int, int> counts_around(int micro_batches) const;

    /// Seconds that worker (replica, virtual stage's stage) works on one micro-batch, forward and backward, with
    /// `layers` layers in that virtual stage.
    double cell_seconds(int replica, int virtual_stage, int layers);
    /// The same for layers alone, without embedding or logits where the model has a stage without: how fast the worker
    /// is, whatever its place in the pipeline.
    double plain_seconds(int replica, int stage, int layers);
    /// Replicas of one class have GPUs of equal types and paces in every stage, one by one.
    int replica_class(int replica) const { return class_of_replica_[static_cast<std::size_t>(replica)]; }
    /// Whether some worker is slower than another one of its stage.
    bool replicas_differ() const { return classes_ > 1; }

    /// Compiles the programs of somewhat smaller and larger shares than those of `plan`, where compiling takes long, so
    /// that no decision waits for it.
    void prepare(const scenarios::Plan& plan);
    const scenarios::IterationCosts& costs(const scenarios::Plan& plan);
    /// Whether the schedule takes the micro-batches of every replica.
    static bool can_be_scheduled(const scenarios::Plan& plan);
    bool fits_memory(const scenarios::Plan& plan);
    /// Whether worker (replica, stage) has room for `layers` [virtual_pipeline] of its chunks.
    bool fits_memory(int replica, int stage, std::span<const int> layers, int micro_batches);
    /// Of the fullest rank.
    scenarios::Bytes memory(const scenarios::Plan& plan);

  private:
    double worker_seconds(int worker, int virtual_stage, int layers);
    void put_times(const scenarios::Plan& plan);
    void classify();

    const scenarios::Job& job_;
    std::span<const scenarios::Bytes> memory_of_gpu_;
    Shared shared_;
    scenarios::LayoutCosts costs_;
    scenarios::StepTimer timer_;
    std::optional<scenarios::Conditions> conditions_;
    scenarios::PlacedPaces paces_;
    std::vector<int> class_of_replica_;
    int classes_ = 1;
    std::vector<scenarios::Bytes> room_;  ///< [workers] memory of the smallest GPU
    scenarios::IterationCosts costs_of_plan_;
    scenarios::StepTimes times_;
};

}  // namespace headway::policies
