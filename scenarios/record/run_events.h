#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/language/scenario.h"
#include "scenarios/language/units.h"
#include "scenarios/timing/evaluator.h"

/// What a run tells while it goes on. Whoever runs a job reports these events to a `RunSink`; the record writer, the summary and
/// the progress bar are sinks. Times are integer nanoseconds since the start of the run.
namespace headway::scenarios {

/// Where the time of one iteration went, averaged over the plan's GPUs; the parts add up to `duration`.
/// Compute, bubble and the exposed communications are those of the healthy iteration under the same plan; what it took longer
/// than that is straggling (including slower links).
struct TimeShares {
  std::int64_t compute_ns = 0;
  std::int64_t bubble_ns = 0;
  std::int64_t tensor_ns = 0;       ///< exposed tensor and context communication
  std::int64_t pipeline_ns = 0;     ///< exposed pipeline communication
  std::int64_t data_ns = 0;         ///< exposed gradient reduction and parameter gathering
  std::int64_t straggling_ns = 0;
  std::int64_t recovery_ns = 0;     ///< standing still and repeating lost work; zero for a useful iteration
};

struct IterationEvent {
  std::int64_t index = 0;           ///< optimizer step, counted from 0; repeated after a rollback
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  bool repeats = false;             ///< trains again what was lost to a rollback
  TimeShares shares;
  std::vector<std::int64_t> disturbance_cost_ns;   ///< [disturbances of the scenario] this iteration's excess, by cause
};

/// One GPU's sensors; written when a value changed, at the scenario's telemetry period.
struct TelemetryEvent {
  std::int64_t time_ns = 0;
  int gpu = 0;
  double temperature_c = 0.0;
  double sm_clock_mhz = 0.0;
  double power_w = 0.0;
  double speed = 1.0;               ///< compute speed over nominal
  std::uint32_t throttle_reasons = 0;
};

struct DisturbanceEvent {
  std::int64_t time_ns = 0;
  int index = 0;                    ///< into the scenario's disturbances
  bool begins = true;
};

/// The job stands still: checkpoint save, recovery after a loss, switch.
struct PauseEvent {
  enum class Reason : std::uint8_t { kCheckpoint, kLoss, kSwitch } reason = Reason::kCheckpoint;
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::int64_t iterations_lost = 0;
  int disturbance = -1;             ///< the loss that caused it
  std::string what;                 ///< "node 17 lost; waited 14400 s for its repair, reloaded the checkpoint of iteration 120"
};

struct DecisionEvent {
  std::int64_t time_ns = 0;
  std::int64_t iteration = 0;
  std::vector<std::string> candidates;
  int chosen = 0;
};

struct LinkLoadEvent {
  std::int64_t time_ns = 0;
  std::string link;
  double utilisation = 0.0;         ///< of the nominal bandwidth, averaged over the iteration, 0..1
};

/// Sum over one GPU's run, for the list of the slowest.
struct GpuSummary {
  int gpu = 0;
  double mean_speed = 1.0;          ///< compute speed over nominal, time-weighted
  double min_speed = 1.0;
  double max_temperature_c = 0.0;
};

struct RunHeader {
  const Scenario* scenario = nullptr;    ///< resolved, with generated disturbances
  std::string policy;
  std::int64_t healthy_iteration_ns = 0; ///< best initial plan with every GPU and link healthy: the base of goodput
  double model_flops = 0.0;              ///< per iteration (numerator of MFU)
  double hardware_flops = 0.0;           ///< per iteration with recomputation
  double peak_flops_per_second = 0.0;    ///< of the plan's GPUs
};

struct RunFooter {
  bool complete = true;                  ///< false: interrupted
  std::int64_t wall_ns = 0;
  std::int64_t decisions = 0;
  std::int64_t switches = 0;
  std::vector<GpuSummary> gpus;          ///< [cluster GPUs]
};

class RunSink {
 public:
  virtual ~RunSink() = default;
  virtual void begin(const RunHeader&) {}
  virtual void iteration(const IterationEvent&) {}
  virtual void telemetry(const TelemetryEvent&) {}
  virtual void disturbance(const DisturbanceEvent&) {}
  virtual void pause(const PauseEvent&) {}
  virtual void decision(const DecisionEvent&) {}
  virtual void link_load(const LinkLoadEvent&) {}
  /// Operations of one iteration, only for runs recorded at that level.
  virtual void operations(std::int64_t /*iteration*/, std::int64_t /*start_ns*/, const std::vector<TimelineEntry>&) {}
  virtual void end(const RunFooter&) {}
};

}  // namespace headway::scenarios
