#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "policies/training_cluster.h"
#include "sim/run/attribution.h"
#include "sim/run/facility.h"
#include "sim/run/measurement.h"
#include "sim/run/reporter.h"
#include "sim/run/site.h"
#include "sim/telemetry/telemetry.h"
#include "sim/thermal/fleet.h"

namespace headway::sim {

/// One run of a job through a scenario: iterations, checkpoints, losses and recovery, switches, in the order of time.
class Trajectory {
  public:
    Trajectory(std::shared_ptr<Site> site, scenarios::RunSink* sink);

    const std::shared_ptr<Site>& site() const { return site_; }
    void start(std::uint64_t seed);
    policies::Measurements run(const scenarios::Plan& plan, int iterations);
    Duration move_to(const scenarios::Plan& plan);
    policies::RecoveryOutcome recover(const policies::Recovery& choice);
    Duration now() const { return now_; }
    std::vector<scenarios::GpuSummary> gpu_summaries() const;

  private:
    struct Checkpoint {
        std::int64_t iteration = 0;
        Duration durable;
    };
    /// An iteration that will repeat itself until something changes.
    struct Quiet {
        bool is = false;
        IterationTimes times;
        std::vector<double> speed;  ///< [GPUs]
    };
    enum class Step { kTrained, kLost };

    // ---- iterations.cpp ----
    Step train_one(MeasurementAverage& average);
    ClusterState state_with(const Environment& environment, const std::vector<double>& thermal_pace) const;
    /// Puts in what is drawn anew for the n-th iteration that is executed.
    void draw(ClusterState& state, const scenarios::Plan& plan, std::int64_t execution) const;
    IterationTimes compute(const std::vector<double>& thermal_pace);
    IterationTimes compute_changing(const ClusterState& first, IterationTimes times,
                                    const std::vector<double>& thermal_pace);
    /// Counts iterations that have ended at `now_`.
    void completed(const IterationTimes& times, const std::vector<double>& speed, int iterations);
    void save_if_due();

    // ---- stretches.cpp ----
    /// Iterations in which nothing happens that has to be told or looked at one by one, up to `most`; appends their
    /// durations. 0: none, the next one is for train_one.
    int train_stretch(MeasurementAverage& average, int most, std::vector<Duration>& durations);
    int repeat_quiet(MeasurementAverage& average, int count, std::vector<Duration>& durations);
    int heat_together(MeasurementAverage& average, int most, Duration until, std::vector<Duration>& durations);
    Duration stretch_end() const;

    // ---- causes.cpp ----
    void attribute(const IterationTimes& times, Duration start, const std::vector<double>& thermal_pace,
                   std::vector<std::int64_t>& costs_ns);
    void report(const IterationTimes& times, Duration start, const std::vector<double>& thermal_pace);
    /// Causes in force, or still felt; `drawn`: those that are drawn anew for every iteration, or the others.
    std::vector<int> causes_at(Duration at, bool drawn) const;
    std::int64_t attribute_draws(PlanModel& model, std::int64_t excess_ns, const IterationTimes& times, Duration start,
                                 const std::vector<double>& thermal_pace, std::vector<std::int64_t>& costs_ns);
    void track_lingering(const std::vector<double>& thermal_pace);

    // ---- recovery.cpp ----
    /// The first loss before that time that hits the plan.
    std::optional<Duration> next_loss(const scenarios::Plan& plan, Duration before);
    void lose(const scenarios::Plan& plan, Duration at, const std::vector<int>& shut_down);
    void take_losses(const scenarios::Plan& plan, Duration until, Duration noticed);
    void absorb(Outage outage);
    std::vector<int> gpus_of(const LossEvent& loss) const;
    int heats(int gpu, Duration at) const;
    policies::RecoveryOutcome wait_for_replacement();
    policies::RecoveryOutcome restart_under(const std::shared_ptr<PreparedPlan>& next);
    /// The job trains on from its last checkpoint at `end`.
    policies::RecoveryOutcome go_on(Duration end, std::string what, bool other_plan);
    Duration until_the_end(Duration time) const;

    // ---- switching.cpp ----
    void expect_nothing_lost() const;
    /// The plan, where it needs nothing that is out. Throws std::invalid_argument.
    std::shared_ptr<PreparedPlan> usable(const scenarios::Plan& plan);
    /// The job runs under this plan from now on.
    void take_up(std::shared_ptr<PreparedPlan> prepared);
    double slowest_link(const scenarios::Plan& from, const scenarios::Plan& to) const;

    bool ended() const;
    void refresh_environment();
    void cool(Duration pause);
    policies::Measurements measured(const MeasurementAverage& average);

    std::shared_ptr<Site> site_;
    const scenarios::Scenario& scenario_;
    const Topology& topology_;
    const Timeline& timeline_;
    Fleet fleet_;
    Facility facility_;
    Reporter reporter_;
    Telemetry telemetry_;
    Attribution attribution_;

    // ---- of the episode ----
    std::uint64_t seed_ = 1;
    Duration now_;
    std::shared_ptr<PreparedPlan> current_;
    Environment environment_;
    Duration environment_until_;
    Duration environment_since_;
    std::vector<double> busy_;  ///< [GPUs] below 0: not in the job
    Duration last_duration_;
    Quiet quiet_;
    std::vector<std::pair<Duration, ClusterState>> last_states_;  ///< during the last iteration; for operations only
    std::int64_t drawn_ = 0;  ///< iterations executed, repeated ones too: index of the random streams
    std::int64_t completed_ = 0;
    std::int64_t furthest_ = 0;
    int vain_recoveries_ = 0;              ///< since the last iteration that was new
    std::vector<Checkpoint> checkpoints_;  ///< latest last
    Duration last_save_;
    std::size_t next_loss_ = 0;    ///< index into the timeline's losses
    std::vector<Outage> outages_;  ///< from which the job has not recovered yet
    Duration broken_off_;          ///< end of the last completed iteration before the loss
    Duration lost_at_;
    std::set<int> lingering_;         ///< thermal causes whose GPUs have not recovered
    std::vector<double> speed_time_;  ///< [GPUs] sum of speed x seconds
    std::vector<double> seconds_;     ///< [GPUs] in iterations that the plan had the GPU in
    std::vector<scenarios::GpuSummary> summaries_;
};

}  // namespace headway::sim
