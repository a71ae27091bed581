#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "policies/training_cluster.h"
#include "scenarios/costs/checkpoint.h"
#include "scenarios/language/scenario.h"
#include "sim/disturbances/timeline.h"
#include "sim/iteration/plan_model.h"
#include "sim/run/attribution.h"
#include "sim/run/facility.h"
#include "sim/run/measurement.h"
#include "sim/run/reporter.h"
#include "sim/simulated_cluster.h"
#include "sim/thermal/fleet.h"

namespace headway::sim {

/// One run of a job through a scenario: iterations, checkpoints, losses and recovery, in the order of time.
class Trajectory {
  public:
    Trajectory(const scenarios::Scenario& scenario, scenarios::RunSink* sink, const SimulationOptions& options);

    const policies::ClusterFacts& facts() const { return facts_; }
    void start(std::uint64_t seed);
    policies::Measurements run(const scenarios::Plan& plan, int iterations);
    Duration move_to(const scenarios::Plan& plan);
    policies::RecoveryOutcome recover(const policies::Recovery& choice);
    Duration now() const { return now_; }
    Duration healthy_iteration() const { return healthy_iteration_; }
    std::vector<scenarios::GpuSummary> gpu_summaries() const;

  private:
    /// A plan with what is known of it when healthy.
    struct Prepared {
        std::uint64_t number = 0;
        std::unique_ptr<PlanModel> model;
        IterationTimes healthy;
        scenarios::TimeShares shares;
        scenarios::CheckpointCosts checkpoint;
        std::vector<double> busy;          ///< [GPUs] of the healthy iteration
        std::vector<double> pace;          ///< [GPUs] that heat leaves in it, in the facility's own air
        int shuts_down = -1;               ///< GPU that is too hot even in it
        std::vector<std::int64_t> memory;  ///< [pipeline] bytes
    };
    struct Checkpoint {
        std::int64_t iteration = 0;
        Duration durable;
    };
    enum class Step { kTrained, kLost };

    Prepared& prepare(const scenarios::Plan& plan);
    void expect_nothing_lost() const;
    void check_plan(const scenarios::Plan& plan) const;
    std::vector<double> busy_of(const scenarios::Plan& plan, const IterationTimes& times) const;

    Step train_one(Prepared& prepared, MeasurementAverage& average);
    void refresh_environment();
    ClusterState state_with(const Environment& environment, const std::vector<double>& thermal_pace) const;
    /// Puts in what is drawn anew for the n-th iteration that is executed.
    void draw(ClusterState& state, const scenarios::Plan& plan, std::int64_t execution) const;
    IterationTimes compute(Prepared& prepared, const std::vector<double>& thermal_pace);
    void attribute(Prepared& prepared, const IterationTimes& times, Duration start,
                   const std::vector<double>& thermal_pace, std::vector<std::int64_t>& costs_ns);
    void report(Prepared& prepared, const IterationTimes& times, Duration start,
                const std::vector<double>& thermal_pace);
    /// Causes in force, or still felt; `drawn`: those that are drawn anew for every iteration, or the others.
    std::vector<int> causes_at(Duration at, bool drawn) const;
    std::int64_t attribute_draws(PlanModel& model, std::int64_t excess_ns, const IterationTimes& times, Duration start,
                                 const std::vector<double>& thermal_pace, std::vector<std::int64_t>& costs_ns);
    void track_lingering(const std::vector<double>& thermal_pace);
    void save_if_due(Prepared& prepared);

    /// The first loss before that time that hits the plan.
    std::optional<Duration> next_loss(const scenarios::Plan& plan, Duration before);
    void lose(const scenarios::Plan& plan, Duration at, const std::vector<int>& shut_down);
    void take_losses(const scenarios::Plan& plan, Duration until, Duration noticed);
    void absorb(Outage outage);
    std::vector<int> gpus_of(const LossEvent& loss) const;
    policies::RecoveryOutcome wait_for_replacement();
    policies::RecoveryOutcome restart_under(const scenarios::Plan& plan);
    /// The job trains on from its last checkpoint at `end`.
    policies::RecoveryOutcome go_on(const scenarios::Plan& plan, Duration end, std::string what);
    /// The job runs under this plan from now on.
    void take_up(const Prepared& prepared);
    int heats(int gpu, Duration at) const;
    Duration until_the_end(Duration time) const;
    bool ended() const;

    scenarios::Scenario scenario_;
    SimulationOptions options_;
    policies::ClusterFacts facts_;
    Topology topology_;
    SharedNetwork network_;
    Timeline timeline_;
    Fleet fleet_;
    Facility facility_;
    Reporter reporter_;
    Attribution attribution_;
    std::list<std::pair<scenarios::Plan, Prepared>> prepared_;  ///< latest first
    std::uint64_t plans_seen_ = 0;
    Environment healthy_environment_;
    Duration healthy_iteration_;

    // ---- of the episode ----
    std::uint64_t seed_ = 1;
    Duration now_;
    Environment environment_;
    Duration environment_until_;
    Duration environment_since_;
    std::vector<double> busy_;  ///< [GPUs] below 0: not in the job
    Duration last_duration_;
    std::vector<std::pair<Duration, ClusterState>> last_states_;  ///< during the last iteration
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
    double seconds_ = 0.0;
    std::vector<scenarios::GpuSummary> summaries_;
};

}  // namespace headway::sim
