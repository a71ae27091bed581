#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scenarios/language/plan.h"
#include "scenarios/timing/durations.h"

/// Programs as tasks with dependencies: a task starts when its predecessors have ended. The evaluator compiles these
/// graphs, the simulator walks them, and both therefore mean the same by a program.
namespace headway::scenarios {

enum class TaskKind : std::uint8_t {
    kForward,
    kBackward,
    kBackwardInput,
    kBackwardWeight,
    kActivation,       ///< message from (stage, chunk) to the next virtual stage
    kGradient,         ///< message from (stage, chunk) to the previous virtual stage
    kActivationDelay,  ///< what is added before such a message
    kGradientDelay,
    kJoin,           ///< takes no time: ends when all predecessors have ended
    kReduceBuckets,  ///< of a chunk over all replicas: what overlaps with the chunk's last backward
    kReduce,         ///< of a chunk over all replicas: the rest, or all of it where nothing overlaps
    kReduceTied,     ///< first and last stage of a replica
    kOptimizer,
    kGatherFirst,  ///< of a chunk over all replicas: what the first forward waits for
    kGather,       ///< of a chunk over all replicas: the rest, or all of it where nothing overlaps
};

constexpr bool is_compute(TaskKind kind) {
    return kind <= TaskKind::kBackwardWeight;
}
constexpr bool is_message(TaskKind kind) {
    return kind == TaskKind::kActivation || kind == TaskKind::kGradient;
}

struct Task {
    TaskKind kind = TaskKind::kJoin;
    std::int16_t chunk = 0;
    std::int32_t stage = 0;    ///< of a message: the sender's
    std::int32_t replica = 0;  ///< -1: all replicas (reductions, gathering)
    std::int32_t micro_batch = 0;
};

/// Compressed lists of predecessors; every task stands after its predecessors.
class TaskGraph {
  public:
    void reserve(std::size_t tasks, std::size_t predecessors) {
        tasks_.reserve(tasks);
        first_.reserve(tasks + 1);
        predecessors_.reserve(predecessors);
    }
    /// Appends a task; returns its number.
    std::int32_t add(const Task& task, std::span<const std::int32_t> predecessors);
    std::int32_t add(const Task& task, std::initializer_list<std::int32_t> predecessors) {
        return add(task, std::span<const std::int32_t>(predecessors.begin(), predecessors.size()));
    }

    std::int32_t size() const { return static_cast<std::int32_t>(tasks_.size()); }
    const Task& task(std::int32_t i) const { return tasks_[static_cast<std::size_t>(i)]; }
    const std::vector<Task>& tasks() const { return tasks_; }
    std::span<const std::int32_t> predecessors(std::int32_t i) const {
        const auto begin = first_[static_cast<std::size_t>(i)], end = first_[static_cast<std::size_t>(i) + 1];
        return {predecessors_.data() + begin, static_cast<std::size_t>(end - begin)};
    }

    /// The same edges the other way round, for a simulator that starts tasks as their inputs end.
    struct Successors {
        std::vector<std::int32_t> first;      ///< [size + 1]
        std::vector<std::int32_t> task;       ///< successors of i: task[first[i]] .. task[first[i + 1] - 1]
        std::vector<std::int32_t> in_degree;  ///< [size]
    };
    Successors successors() const;

  private:
    std::vector<Task> tasks_;
    std::vector<std::int32_t> first_{0};
    std::vector<std::int32_t> predecessors_;
};

/// How messages hold up the streams they come from. Both software habits below were found by reading the programs
/// behind measured slow-link runs (Wu et al., NSDI 2026); a model that only adds link latency is 14 to 36 % low on
/// them.
enum class MessageMode : std::uint8_t {
    /// A batch holds the compute stream until all its messages are through. Delays of the batch's sends pass first; a
    /// message
    /// starts when both sides have come to it. (Megatron-LM: batch_isend_irecv and wait.)
    kBlocking,
    /// One launch queue a worker, in program order; one stream for each pair of neighbours carries both directions
    /// first in,
    /// first out. A send is launched when the message before it on that stream is through and its delay has passed, a
    /// receive
    /// when the message before it is through; what stands behind in the program waits for that, but not for the message
    /// itself.
    /// (Megatron-LM zero-bubble with CUDA_DEVICE_MAX_CONNECTIONS=1.)
    kPosted,
    /// Messages run beside compute. Those of one worker in one direction go one after the other, delay included; only
    /// the
    /// operation that needs a message waits for it.
    kOverlapped,
};

/// With overlap_pipeline_comm kOverlapped, otherwise kPosted for zero-bubble and kBlocking for all other schedules.
MessageMode message_mode(const Layout& layout);

/// One replica from its first forward to its last backward.
struct ReplicaGraph {
    TaskGraph graph;
    std::vector<std::int32_t> last_of_stage;  ///< [pipeline] the worker's compute stream is free when this has ended
    std::vector<std::int32_t> gradient_of_chunk;  ///< [pipeline * virtual_pipeline] the chunk's gradient is complete
    /// [pipeline * virtual_pipeline] with overlap_grad_reduce: the chunk's last backward starts when this ends; else
    /// -1.
    std::vector<std::int32_t> buckets_of_chunk;
};

/// Throws std::invalid_argument as make_program does, std::logic_error should the programs deadlock.
ReplicaGraph replica_graph(const Layout& layout, int micro_batches);

/// A whole iteration: the given replicas, joined by reductions, the optimizer's norm and gathering. Tasks of replica r
/// carry `replicas[r]`, so that a simulator can leave out replicas that equal another one.
struct IterationGraph {
    TaskGraph graph;
    std::vector<std::int32_t> last_of_worker;  ///< [replicas given * pipeline] the worker is done with the iteration
};

/// `micro_batches` [replicas given]. Rules of the tail: reductions of one stage join all replicas and run one after the
/// other on the data communication stream; the tied embedding joins first and last stage of a replica, before or after
/// that as the program says; the optimizer waits for every worker (global gradient norm); gathering joins the replicas
/// of a stage.
IterationGraph iteration_graph(const Layout& layout, bool tied_embedding, std::span<const int> replicas,
                               std::span<const int> micro_batches);

/// Duration of every task under `times`, which describe all replicas of the layout (`micro_batches` [data] as in the
/// plan).
std::vector<std::int64_t> task_durations(const TaskGraph& graph, const Layout& layout,
                                         std::span<const int> micro_batches, const StepTimes& times);

}  // namespace headway::scenarios
