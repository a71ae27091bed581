#pragma once

#include <stdexcept>

#include "policies/learning/features.h"
#include "policies/learning/network.h"
#include "policies/learning/normaliser.h"
#include "policies/training_cluster.h"
#include "scenarios/language/strategy.h"
#include "tests/scenarios/language/small_scenario.h"

namespace headway::policies {

inline TrainedPolicy fresh_policy() {
    TrainedPolicy policy;
    policy.shape = default_shape();
    scenarios::RandomStream stream(4, "test.fresh");
    policy.parameters = Network::initial_parameters(policy.shape, stream);
    policy.global_normaliser = empty_normaliser(global_features().size());
    policy.candidate_normaliser = empty_normaliser(candidate_features().size());
    return policy;
}

/// The small job on a cluster that is a third slower from 100 s on, except under plans other than the first. A switch
/// takes 5 s. The job is over after `ends_after`.
class SlowingCluster final : public TrainingCluster {
  public:
    explicit SlowingCluster(Duration ends_after) : ends_after_(ends_after) {
        const scenarios::Scenario scenario = scenarios::read_small();
        facts_.job = scenario.job;
        facts_.cluster = scenario.cluster;
        facts_.initial_plan = scenarios::initial_plan(scenario.strategy, scenario.job, scenario.cluster);
        facts_.healthy_iteration = Duration::seconds(1);
    }
    const ClusterFacts& facts() const override { return facts_; }
    void start_episode(std::uint64_t) override { now_ = {}; }
    Measurements run(const scenarios::Plan& plan, int iterations) override {
        Measurements measured;
        for (int i = 0; i < iterations && now_ < ends_after_; ++i) {
            const bool slow = now_ >= Duration::seconds(100) && plan == facts_.initial_plan;
            const Duration iteration = Duration::milliseconds(slow ? 1500 : 1000);
            measured.iterations.push_back(iteration);
            now_ += iteration;
        }
        for (const int gpu : plan.gpu_of_rank) {
            RankMeasurement rank;
            rank.gpu = gpu;
            rank.compute = Duration::milliseconds(now_ > Duration::seconds(100) && gpu == 1 ? 1200 : 800);
            rank.memory_used_bytes = 1 << 30;
            measured.ranks.push_back(rank);
        }
        measured.ended = now_ >= ends_after_;
        return measured;
    }
    Duration move_to(const scenarios::Plan&) override {
        now_ += Duration::seconds(5);
        return Duration::seconds(5);
    }
    RecoveryOutcome recover(const Recovery&) override { throw std::logic_error("nothing was lost"); }
    Duration now() const override { return now_; }

  private:
    ClusterFacts facts_;
    Duration ends_after_;
    Duration now_;
};

}  // namespace headway::policies
