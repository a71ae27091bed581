#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backend/cluster/command.h"
#include "backend/cluster/member.h"
#include "backend/cluster/run_reporter.h"
#include "policies/training_cluster.h"
#include "scenarios/language/scenario.h"
#include "scenarios/record/run_events.h"

namespace headway::backend {

/// The seam on real processors: process 0 of a deployment, which trains itself and commands the other processes, each
/// of which serves (Member::serve). Process p is GPU p of the scenario's cluster.
///
/// Time is that of the machine's monotonic clock since start_episode, as it was when the last call returned; so a call
/// also covers what passed since the one before (a policy that thinks lets time pass). Iterations follow each other at
/// the pace of the slowest process.
///
/// A switch that only shares micro-batches anew changes programs and nothing else (Trainer::share); any other moves the
/// state between the processes, from memory to memory. Both end when every process is ready to train on, and what
/// passed until then is the pause. A process that is lost, or not heard of for the scenario's deploy.timeout, ends the
/// run: run() and move_to() throw BackendError with the reason, and so do the calls of all other processes. recover()
/// refuses: go on with a new launch that resumes from the newest checkpoint.
class RealCluster final : public policies::TrainingCluster {
  public:
    using Duration = scenarios::Duration;

    /// `member` is this process's and outlives the cluster, as does `sink`, which may be null. Trains a few iterations
    /// for the healthy iteration time and forgets them.
    RealCluster(const scenarios::Scenario& scenario, const scenarios::Plan& plan, const DeploymentOptions& options,
                Control& control, Member& member, scenarios::RunSink* sink, bool operations = false);
    /// Ends the other processes: as commanded, or by an abort where the run failed.
    ~RealCluster() override;

    const policies::ClusterFacts& facts() const override { return facts_; }
    void start_episode(std::uint64_t seed) override;
    policies::Measurements run(const scenarios::Plan& plan, int iterations) override;
    Duration move_to(const scenarios::Plan& plan) override;
    policies::RecoveryOutcome recover(const policies::Recovery& choice) override;
    Duration now() const override { return now_; }

    /// Optimizer steps done, those of earlier runs that a checkpoint brought included.
    std::int64_t steps() const { return step_; }
    /// Somebody asked the run to end (SIGTERM), and it did at the end of an iteration.
    bool stopped() const { return stopped_; }
    /// Writes a last checkpoint, where there is a folder for them, and ends the other processes.
    void finish();
    std::vector<scenarios::GpuSummary> gpu_summaries() const { return reporter_.gpu_summaries(); }

  private:
    std::optional<StepReport> command(const Command& command);
    std::vector<StepReport> step_everywhere();
    Duration train_one(IterationMeasurement& measurement, bool told);
    void measure_healthy_iteration();
    void save(bool wait);
    void save_if_due();
    void say_how_the_pace_was_kept();
    void say_what_is_missing();
    bool ended() const;
    [[noreturn]] void fail(const std::exception& error);
    void keep_in_touch();
    void stop_keeping_in_touch();

    const scenarios::Scenario scenario_;
    const DeploymentOptions options_;
    Control& control_;
    Member& member_;
    policies::ClusterFacts facts_;
    RunReporter reporter_;
    std::string reason_;  ///< why the control failed
    std::mutex reason_mutex_;
    std::shared_ptr<void> watching_;

    scenarios::Plan plan_;
    std::uint64_t seed_ = 1;
    std::int64_t step_ = 0;
    std::int64_t execution_ = 0;
    Duration now_;
    Duration last_save_;
    std::int64_t saved_step_ = 0;
    std::int64_t paced_ = 0;  ///< operations at a declared pace, all processes
    std::int64_t late_ = 0;   ///< of them: took longer
    bool stopped_ = false;
    bool sensors_seen_ = false;
    bool over_ = false;  ///< the others have gone
    /// While a policy thinks, the others hear that process 0 is there.
    std::mutex talking_;  ///< held by who uses the control
    std::mutex quiet_mutex_;
    std::condition_variable quiet_changed_;
    bool quiet_ends_ = false;
    std::thread keeper_;
};

}  // namespace headway::backend
