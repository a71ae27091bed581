#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "scenarios/language/plan.h"
#include "scenarios/language/units.h"
#include "scenarios/timing/durations.h"

/// Contention-free time of one iteration: the longest path over the programs of all workers. Equal replicas are
/// evaluated once.
namespace headway::scenarios {

/// Where the time of one worker went; the parts add up to the iteration.
struct WorkerTimes {
    Duration compute;       ///< forward, backward, optimizer (tensor communication included: the costs know its share)
    Duration data_exposed;  ///< in gradient reduction and parameter gathering while the worker has nothing else to do
    Duration idle;  ///< bubble, messages, waiting for slower replicas and stages, and for parameters at the start
};

struct Evaluation {
    Duration iteration;
    std::vector<WorkerTimes> workers;  ///< [workers]
};

/// One operation of the timeline, for traces. Collectives of all replicas have an entry for each worker that takes
/// part.
struct TimelineEntry {
    int worker = 0;
    std::uint8_t op = 0;  ///< scenarios::Op; a message is the sender's kSendActivation or kSendGradient, delay included
    int chunk = 0;
    int micro_batch = 0;
    std::int64_t start_ns = 0;  ///< from the start of the iteration
    std::int64_t end_ns = 0;
};

class ReplicaPrograms;
class TaskGraph;

/// Operations of an iteration whose tasks (those of iteration_graph with all replicas) lasted from `first` to `second`
/// [tasks], worker by worker in the order of their starts.
std::vector<TimelineEntry> timeline_of(const TaskGraph& graph, const Layout& layout,
                                       const std::vector<std::pair<std::int64_t, std::int64_t>>& spans);

/// Compiles the programs of a plan once; evaluates them for many sets of durations. Rules of messages: message_mode in
/// task_graph.h; rules of the end of an iteration: iteration_graph there. Not thread-safe.
class Evaluator {
  public:
    /// Throws std::invalid_argument when the plan's programs cannot be made.
    Evaluator(const Plan& plan, bool tied_embedding);
    /// With programs that other evaluators of the same layout use too (replica_programs.h); throws when they are
    /// another layout's.
    Evaluator(const Plan& plan, bool tied_embedding, std::shared_ptr<ReplicaPrograms> programs);
    ~Evaluator();
    Evaluator(Evaluator&&) noexcept;
    Evaluator& operator=(Evaluator&&) noexcept;

    /// Iteration time only: the fast path. Throws std::invalid_argument when a vector of `times` has the wrong size
    /// (all three).
    Duration iteration_time(const StepTimes& times);
    Evaluation evaluate(const StepTimes& times);
    /// [data] of each replica by itself, from its first forward to its last backward.
    std::vector<Duration> replica_times(const StepTimes& times);
    /// Every operation, worker by worker in the order of their starts. Slow: walks the whole task graph.
    std::vector<TimelineEntry> timeline(const StepTimes& times);

    /// For tests and benchmarks: false evaluates equal replicas one by one.
    void fold_equal_replicas(bool fold);

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace headway::scenarios
