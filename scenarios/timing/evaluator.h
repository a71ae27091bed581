#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "scenarios/language/plan.h"
#include "scenarios/language/units.h"

/// Contention-free time of one iteration: the longest path over the programs of all workers. Equal replicas are evaluated once.
namespace headway::scenarios {

/// Durations of everything an iteration consists of, in nanoseconds. worker = replica * pipeline + stage; a cell is
/// worker * virtual_pipeline + chunk.
struct StepTimes {
  std::vector<std::int64_t> forward;            ///< [cells] one micro-batch
  std::vector<std::int64_t> backward;           ///< [cells]
  std::vector<std::int64_t> backward_input;     ///< [cells], zero-bubble only
  std::vector<std::int64_t> backward_weight;    ///< [cells], zero-bubble only
  std::vector<std::int64_t> send_activation;    ///< [cells] to the next virtual stage (0 for the last)
  std::vector<std::int64_t> send_gradient;      ///< [cells] to the previous virtual stage (0 for the first)
  std::vector<std::int64_t> delay_activation;   ///< [cells] added before each send, holding the sender's link; empty: none
  std::vector<std::int64_t> delay_gradient;     ///< [cells]
  std::vector<std::int64_t> reduce_gradients;   ///< [pipeline * virtual_pipeline], stage-major
  std::vector<std::int64_t> reduce_tied_embedding;  ///< [pipeline]
  std::vector<std::int64_t> optimizer;          ///< [workers]
  std::vector<std::int64_t> gather_parameters;  ///< [pipeline]
  std::vector<double> micro_batch_factor;       ///< [sum of micro-batches, replica-major] work relative to the mean; empty: all 1
};

/// Where the time of one worker went; the parts add up to the iteration.
struct WorkerTimes {
  Duration compute;          ///< forward, backward, optimizer (tensor communication included: the costs know its share)
  Duration data_exposed;     ///< waiting in gradient reduction and parameter gathering
  Duration idle;             ///< bubble, waiting for messages and for slower replicas
};

struct Evaluation {
  Duration iteration;
  std::vector<WorkerTimes> workers;   ///< [workers]
};

/// One operation of the timeline, for traces.
struct TimelineEntry {
  int worker = 0;
  std::uint8_t op = 0;         ///< scenarios::Op
  int chunk = 0;
  int micro_batch = 0;
  std::int64_t start_ns = 0;   ///< from the start of the iteration
  std::int64_t end_ns = 0;
};

/// Compiles the programs of a plan once; evaluates them for many sets of durations. Not thread-safe.
class Evaluator {
 public:
  Evaluator(const Plan& plan, bool tied_embedding);
  ~Evaluator();
  Evaluator(Evaluator&&) noexcept;
  Evaluator& operator=(Evaluator&&) noexcept;

  /// Iteration time only: the fast path.
  Duration iteration_time(const StepTimes& times);
  Evaluation evaluate(const StepTimes& times);
  std::vector<TimelineEntry> timeline(const StepTimes& times);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headway::scenarios
