#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/language/plan.h"
#include "scenarios/record/learning_events.h"
#include "scenarios/timing/evaluator.h"

/// What a run tells while it goes on. Whoever runs a job reports these events to a `RunSink`; the record writer, the
/// summary and the progress bar are sinks. Times are integer nanoseconds since the start of the run.
namespace headway::scenarios {

/// Where the time of one iteration went, averaged over the plan's GPUs; the parts add up to `duration`.
/// Compute, bubble and the exposed communications are those of the healthy iteration under the same plan; what it took
/// longer than that is straggling (including slower links).
struct TimeShares {
    std::int64_t compute_ns = 0;
    std::int64_t bubble_ns = 0;
    std::int64_t tensor_ns = 0;    ///< exposed tensor and context communication
    std::int64_t pipeline_ns = 0;  ///< exposed pipeline communication
    std::int64_t data_ns = 0;      ///< exposed gradient reduction and parameter gathering
    std::int64_t straggling_ns = 0;
    std::int64_t recovery_ns = 0;  ///< standing still and repeating lost work; zero for a useful iteration
    bool operator==(const TimeShares&) const = default;
};

struct IterationEvent {
    std::int64_t index = 0;  ///< optimizer step, counted from 0; repeated after a rollback
    std::int64_t start_ns = 0;
    std::int64_t duration_ns = 0;
    bool repeats = false;  ///< trains again what was lost to a rollback
    TimeShares shares;
    std::vector<std::int64_t>
        disturbance_cost_ns;                    ///< [disturbances of the scenario] this iteration's excess, by cause
    std::optional<double> loss = std::nullopt;  ///< mean over the tokens of the batch, where the job really trained
    bool operator==(const IterationEvent&) const = default;
};

/// One GPU's sensors; written when a value changed, at the scenario's telemetry period.
struct TelemetryEvent {
    std::int64_t time_ns = 0;
    int gpu = 0;
    double temperature_c = 0.0;
    double sm_clock_mhz = 0.0;
    double power_w = 0.0;
    double speed = 1.0;  ///< compute speed over nominal
    std::uint32_t throttle_reasons = 0;
    bool operator==(const TelemetryEvent&) const = default;
};

struct DisturbanceEvent {
    std::int64_t time_ns = 0;
    int index = 0;  ///< into the scenario's disturbances
    bool begins = true;
    bool operator==(const DisturbanceEvent&) const = default;
};

/// The job stands still: checkpoint save, recovery after a loss, switch. A loss pause begins where the last completed
/// iteration ended (it contains the iteration that the loss broke off), so that iterations and pauses cover the whole
/// run.
struct PauseEvent {
    enum class Reason : std::uint8_t { kCheckpoint, kLoss, kSwitch } reason = Reason::kCheckpoint;
    std::int64_t start_ns = 0;
    std::int64_t duration_ns = 0;
    std::int64_t iterations_lost = 0;
    int disturbance = -1;  ///< the loss that caused it
    std::string what;      ///< "node 17 lost; waited 14400 s for its repair, reloaded the checkpoint of iteration 120"
    std::optional<Plan> plan = std::nullopt;  ///< under which the job goes on, where that is another than before
    bool operator==(const PauseEvent&) const = default;
};

/// What a policy was told at a decision, as columns over the ranks of the plan: the raw measurements of the interval,
/// from which policies/observation builds the observation again, bit for bit.
struct MeasuredColumns {
    std::vector<int> gpu;                                       ///< [ranks], as are the columns below
    std::vector<std::int64_t> compute_ns, exposed_ns, idle_ns;  ///< per iteration
    std::vector<double> temperature_c, sm_clock_mhz, power_w;
    std::vector<std::uint32_t> throttle_reasons;
    std::vector<std::int64_t> memory_bytes;
    std::vector<int> group_kind, group_index;  ///< [groups]: 0 tensor, 1 pipeline, 2 data
    std::vector<double> group_bytes_per_s;     ///< [groups] bus bandwidth
    bool operator==(const MeasuredColumns&) const = default;
};

/// A candidate and what was predicted for it; zeros where nothing was.
struct DecisionCandidate {
    std::string kind;  ///< "keep", "wait-for-replacement", ...
    std::string why;
    std::int64_t iteration_ns = 0;
    std::int64_t pause_ns = 0;    ///< until training goes on under it
    std::int64_t restart_ns = 0;  ///< the same change by save and restart
    std::int64_t moved_bytes = 0;
    std::int64_t memory_bytes = 0;  ///< of the fullest rank
    std::int64_t way_back_ns = 0;   ///< of a restart: pause of the way back to the plan before
    bool operator==(const DecisionCandidate&) const = default;
};

/// What another policy, which does not act, would have chosen from the same candidates.
struct ShadowChoice {
    std::string policy;
    int chosen = 0;
    std::int64_t regret_ns = 0;  ///< predicted time lost by its choice over what was done; below 0: it would have won
    bool operator==(const ShadowChoice&) const = default;
};

struct DecisionEvent {
    /// Who chose: the policy, the rule it was handed over to, or the guard that takes a failed switch back.
    enum class By : std::uint8_t { kPolicy, kRule, kRollback };

    std::int64_t time_ns = 0;
    std::int64_t iteration = 0;               ///< useful iterations trained so far
    std::int64_t iteration_ns = 0;            ///< mean of the interval; 0 when none completed
    std::vector<std::int64_t> iterations_ns;  ///< its iterations, in order
    std::vector<int> lost_gpus;               ///< empty: no loss
    std::int64_t noticed_ns = 0;              ///< when the loss was
    std::vector<int> unavailable_gpus;
    Plan plan;  ///< under which the interval ran; without ranks: as after the decision before
    MeasuredColumns measured;
    std::vector<DecisionCandidate> candidates;
    int chosen = 0;
    By by = By::kPolicy;
    std::optional<Plan> chosen_plan;  ///< where the choice is another than `plan`
    std::optional<ShadowChoice> shadow;
    bool operator==(const DecisionEvent&) const = default;
};

struct LogEvent {
    enum class Severity : std::uint8_t { kInfo, kWarning, kError } severity = Severity::kInfo;
    std::int64_t time_ns = 0;
    std::string text;
    bool operator==(const LogEvent&) const = default;
};

struct LinkLoadEvent {
    std::int64_t time_ns = 0;
    std::string link;
    double utilisation = 0.0;  ///< of the nominal bandwidth, averaged over the iteration, 0..1
    bool operator==(const LinkLoadEvent&) const = default;
};

/// Sum over one GPU's run, for the list of the slowest.
struct GpuSummary {
    int gpu = 0;
    double mean_speed = 1.0;  ///< compute speed over nominal, time-weighted, while the plan had it
    double min_speed = 1.0;
    double max_temperature_c = 0.0;
    bool operator==(const GpuSummary&) const = default;
};

/// One disturbance of the scenario (generated ones included), as far as reports need it.
struct DisturbanceFacts {
    std::string name;
    std::string kind;  ///< `kind_of` its cause
    std::int64_t start_ns = 0;
    std::int64_t duration_ns = -1;  ///< -1: to the end of the run, or until repaired
    bool operator==(const DisturbanceFacts&) const = default;
};

/// `nodes` equal nodes; GPUs are numbered node by node in the order of the groups.
struct TopologyGroup {
    int nodes = 0;
    int gpus_per_node = 0;
    std::string gpu;  ///< type
    bool operator==(const TopologyGroup&) const = default;
};

/// All that a sink, and a reader of the record, needs to know before the first event. Stands alone: no scenario is
/// parsed again to read a record. `make_run_header` (scenarios/record/run_header.h) fills it.
struct RunHeader {
    std::string scenario;       ///< name
    std::string scenario_yaml;  ///< resolved, with generated disturbances; parsing it gives the scenario back
    std::string policy;
    std::uint64_t seed = 1;
    std::int64_t planned_iterations = 0;  ///< 0: the run goes by time
    std::int64_t planned_ns = 0;          ///< 0: the run goes by iterations
    std::int64_t telemetry_period_ns = 0;
    std::int64_t tokens_per_iteration = 0;
    std::int64_t healthy_iteration_ns = 0;  ///< best initial plan with every GPU and link healthy: the base of goodput
    double model_flops = 0.0;               ///< per iteration (numerator of MFU)
    double hardware_flops = 0.0;            ///< per iteration with recomputation
    double peak_flops_per_second = 0.0;     ///< of the plan's GPUs
    std::vector<TopologyGroup> node_groups;
    int nodes_per_rack = 1;
    Plan plan;  ///< initial
    std::vector<DisturbanceFacts> disturbances;
    bool operator==(const RunHeader&) const = default;
};

struct RunFooter {
    bool complete = true;  ///< false: interrupted
    std::int64_t wall_ns = 0;
    std::int64_t decisions = 0;
    std::int64_t switches = 0;
    std::vector<GpuSummary> gpus;  ///< [cluster GPUs]
    bool operator==(const RunFooter&) const = default;
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
    virtual void log(const LogEvent&) {}
    /// Of the record of a training or evaluation, which has no `begin` and nothing of a run but `end`.
    virtual void begin_learning(const LearningHeader&) {}
    virtual void training_update(const TrainingUpdateEvent&) {}
    virtual void evaluation(const EvaluationEvent&) {}
    /// Whether operations of the next iteration would be used: putting them together takes longer than the iteration.
    virtual bool wants_operations() const { return true; }
    /// Operations of one iteration, only for runs recorded at that level.
    virtual void operations(std::int64_t /*iteration*/, std::int64_t /*start_ns*/, const std::vector<TimelineEntry>&) {}
    virtual void end(const RunFooter&) {}
};

/// Forwards every event to several sinks, in order. They must outlive it.
class SinkList final : public RunSink {
  public:
    explicit SinkList(std::vector<RunSink*> sinks) : sinks_(std::move(sinks)) {}
    void begin(const RunHeader& event) override {
        for (RunSink* sink : sinks_) sink->begin(event);
    }
    void iteration(const IterationEvent& event) override {
        for (RunSink* sink : sinks_) sink->iteration(event);
    }
    void telemetry(const TelemetryEvent& event) override {
        for (RunSink* sink : sinks_) sink->telemetry(event);
    }
    void disturbance(const DisturbanceEvent& event) override {
        for (RunSink* sink : sinks_) sink->disturbance(event);
    }
    void pause(const PauseEvent& event) override {
        for (RunSink* sink : sinks_) sink->pause(event);
    }
    void decision(const DecisionEvent& event) override {
        for (RunSink* sink : sinks_) sink->decision(event);
    }
    void link_load(const LinkLoadEvent& event) override {
        for (RunSink* sink : sinks_) sink->link_load(event);
    }
    void log(const LogEvent& event) override {
        for (RunSink* sink : sinks_) sink->log(event);
    }
    void begin_learning(const LearningHeader& event) override {
        for (RunSink* sink : sinks_) sink->begin_learning(event);
    }
    void training_update(const TrainingUpdateEvent& event) override {
        for (RunSink* sink : sinks_) sink->training_update(event);
    }
    void evaluation(const EvaluationEvent& event) override {
        for (RunSink* sink : sinks_) sink->evaluation(event);
    }
    void operations(std::int64_t iteration, std::int64_t start_ns, const std::vector<TimelineEntry>& entries) override {
        for (RunSink* sink : sinks_) sink->operations(iteration, start_ns, entries);
    }
    void end(const RunFooter& event) override {
        for (RunSink* sink : sinks_) sink->end(event);
    }

    bool wants_operations() const override {
        return std::any_of(sinks_.begin(), sinks_.end(), [](const RunSink* sink) { return sink->wants_operations(); });
    }

  private:
    std::vector<RunSink*> sinks_;
};

}  // namespace headway::scenarios
