#pragma once

#include <random>
#include <vector>

#include "policies/training_cluster.h"
#include "scenarios/language/scenario.h"
#include "sim/telemetry/telemetry.h"

namespace headway::tests {

/// The fake of the seam: no hardware, no model of any. An iteration takes 100 ms plus up to 10 ms by the seed; node
/// losses come when the scenario says so and last as long as a node's repair, every tenth iteration is a checkpoint,
/// and a switch takes 500 ms. Sensors of the scenario disturb compute times and come late as they do. It keeps the
/// contract, so that tests of what lies above the seam need nothing else.
class ScriptedCluster final : public policies::TrainingCluster {
  public:
    explicit ScriptedCluster(const scenarios::Scenario& scenario);

    const policies::ClusterFacts& facts() const override { return facts_; }
    void start_episode(std::uint64_t seed) override;
    policies::Measurements run(const scenarios::Plan& plan, int iterations) override;
    policies::Duration move_to(const scenarios::Plan& plan) override;
    policies::RecoveryOutcome recover(const policies::Recovery& choice) override;
    policies::Duration now() const override { return now_; }

    static constexpr int kCheckpointInterval = 10;
    static constexpr policies::Duration kSwitch = policies::Duration::nanoseconds(500'000'000);

  private:
    struct Loss {
        policies::Duration at;
        std::vector<int> gpus;
    };
    void check(const scenarios::Plan& plan) const;
    bool is_out(int gpu) const { return out_until_[static_cast<std::size_t>(gpu)] > now_; }
    /// Losses up to `until`; returns the GPUs of the current plan that they took.
    std::vector<int> lose(policies::Duration until);
    policies::Duration plan_complete() const;  ///< when all of the current plan is there again
    bool ended() const;

    scenarios::Scenario scenario_;
    policies::ClusterFacts facts_;
    std::vector<Loss> losses_;  ///< in order of time
    std::mt19937_64 random_;
    sim::Telemetry telemetry_{scenario_.sensors};
    policies::Duration now_;
    std::size_t next_loss_ = 0;
    std::vector<policies::Duration> out_until_;  ///< [GPUs]
    bool lost_ = false;
    int trained_ = 0;
    scenarios::Plan current_;
};

}  // namespace headway::tests
