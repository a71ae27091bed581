#include "cli/simulated_run.h"

#include <algorithm>
#include <utility>

#include "cli/interrupt.h"
#include "policies/episode.h"
#include "policies/guardrails.h"
#include "policies/learning/online_learner.h"
#include "policies/learning/policy_file.h"
#include "policies/policy.h"
#include "policies/shadow.h"
#include "scenarios/costs/iteration_costs.h"
#include "scenarios/record/run_header.h"
#include "sim/simulated_cluster.h"

namespace headway::cli {

namespace {

class RecordedDecisions final : public policies::EpisodeSink {
  public:
    RecordedDecisions(scenarios::RunSink& sink, const policies::ShadowedPolicy* shadowed,
                      policies::OnlineLearner* learner)
        : sink_(sink), shadowed_(shadowed), learner_(learner) {}
    bool decided(const policies::Decision& decision) override {
        if (learner_ != nullptr) learner_->decided(decision);
        scenarios::DecisionEvent event = policies::decision_event(decision);
        if (shadowed_ != nullptr) event.shadow = shadowed_->choice();
        sink_.decision(event);
        return !interrupted();
    }

    void earned(const policies::Interval& interval) override {
        if (learner_ != nullptr) learner_->earned(interval);
    }

  private:
    scenarios::RunSink& sink_;
    const policies::ShadowedPolicy* shadowed_;
    policies::OnlineLearner* learner_;
};

}  // namespace

policies::WorldFactory what_if_worlds(const scenarios::Scenario& scenario, bool heat_together) {
    // One world is made when the first is asked for; what it learns about plans serves all the others.
    auto first = std::make_shared<std::unique_ptr<sim::SimulatedCluster>>();
    return [scenario, first, heat_together]() -> std::unique_ptr<policies::TrainingCluster> {
        if (!*first) {
            sim::SimulationOptions options;
            options.path = sim::Path::kLongestPath;
            options.heat_together = heat_together;
            *first = std::make_unique<sim::SimulatedCluster>(scenario, nullptr, options);
        }
        return (*first)->another();
    };
}

policies::GuardOptions guards_without(const std::vector<std::string>& off) {
    const auto on = [&](const char* guard) { return std::find(off.begin(), off.end(), guard) == off.end(); };
    policies::GuardOptions guards;
    guards.out_of_distribution = on("ood");
    guards.rollback = on("rollback");
    return guards;
}

bool run_simulation(const scenarios::Scenario& scenario, const scenarios::Plan& plan, const Oversight& oversight,
                    bool operations, scenarios::RunSink& sink) {
    catch_interrupts();
    policies::EpisodeOptions episode;
    episode.decision_interval = scenario.decision_interval;
    episode.max_iterations = scenario.run.time ? 0 : scenario.run.iterations;
    episode.seed = scenario.seed;
    const policies::PolicyResources resources{what_if_worlds(scenario, false), episode};
    policies::OnlineLearner* learner = nullptr;
    std::unique_ptr<policies::Policy> policy;
    if (oversight.learn) {
        auto learning = std::make_unique<policies::OnlineLearner>(policies::read_policy(scenario.policy));
        learner = learning.get();
        policy = std::make_unique<policies::GuardedPolicy>(std::move(learning), policies::make_policy("hysteresis"),
                                                           oversight.guards);
    } else {
        policy = policies::make_guarded_policy(scenario.policy, resources, oversight.guards);
    }
    const policies::ShadowedPolicy* shadowed = nullptr;
    if (oversight.shadow) {
        auto both = std::make_unique<policies::ShadowedPolicy>(
            std::move(policy), policies::make_policy(*oversight.shadow, resources), episode.decision_interval);
        shadowed = both.get();
        policy = std::move(both);
    }
    sim::SimulationOptions options;
    options.operations = operations;
    sim::SimulatedCluster cluster(scenario, &sink, options);
    catch_interrupts();
    sink.begin(scenarios::make_run_header(scenario, plan, scenario.policy, cluster.healthy_iteration(),
                                          scenarios::iteration_costs(scenario.job, scenario.cluster, plan)));
    policies::CandidateGenerator generator(cluster.facts());
    RecordedDecisions recorded(sink, shadowed, learner);
    const policies::EpisodeSummary done = policies::run_episode(cluster, generator, *policy, episode, recorded);
    scenarios::RunFooter footer;
    footer.complete = done.complete;
    footer.wall_ns = done.wall.ns();
    footer.decisions = done.decisions;
    footer.switches = done.switches;
    footer.gpus = cluster.gpu_summaries();
    sink.end(footer);
    if (learner != nullptr) policies::write_policy(*oversight.learn, learner->policy());
    return done.complete;
}

}  // namespace headway::cli
