#include "cli/policy_run.h"

#include <utility>

#include "cli/interrupt.h"
#include "policies/guardrails.h"
#include "policies/learning/online_learner.h"
#include "policies/learning/policy_file.h"
#include "policies/policy.h"
#include "scenarios/costs/iteration_costs.h"
#include "scenarios/record/run_header.h"

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

PolicyRun::PolicyRun(const scenarios::Scenario& scenario, const Oversight& oversight, std::int64_t max_iterations)
    : scenario_(scenario), oversight_(oversight) {
    episode_.decision_interval = scenario.decision_interval;
    episode_.max_iterations = max_iterations;
    episode_.seed = scenario.seed;
    const policies::PolicyResources resources{what_if_worlds(scenario, false), episode_};
    if (oversight.learn) {
        auto learning = std::make_unique<policies::OnlineLearner>(policies::read_policy(scenario.policy));
        learner_ = learning.get();
        policy_ = std::make_unique<policies::GuardedPolicy>(std::move(learning), policies::make_policy("hysteresis"),
                                                            oversight.guards);
    } else {
        policy_ = policies::make_guarded_policy(scenario.policy, resources, oversight.guards);
    }
    if (!oversight.shadow) return;
    auto both = std::make_unique<policies::ShadowedPolicy>(
        std::move(policy_), policies::make_policy(*oversight.shadow, resources), episode_.decision_interval);
    shadowed_ = both.get();
    policy_ = std::move(both);
}

PolicyRun::~PolicyRun() = default;

policies::EpisodeSummary PolicyRun::run(policies::TrainingCluster& cluster, const scenarios::Plan& plan,
                                        scenarios::RunSink& sink) {
    sink.begin(scenarios::make_run_header(scenario_, plan, scenario_.policy, cluster.facts().healthy_iteration,
                                          scenarios::iteration_costs(scenario_.job, scenario_.cluster, plan)));
    policies::CandidateGenerator generator(cluster.facts());
    RecordedDecisions recorded(sink, shadowed_, learner_);
    return policies::run_episode(cluster, generator, *policy_, episode_, recorded);
}

void PolicyRun::keep_what_was_learned() const {
    if (learner_ != nullptr) policies::write_policy(*oversight_.learn, learner_->policy());
}

scenarios::RunFooter run_footer(const policies::EpisodeSummary& done, std::vector<scenarios::GpuSummary> gpus) {
    scenarios::RunFooter footer;
    footer.complete = done.complete;
    footer.wall_ns = done.wall.ns();
    footer.decisions = done.decisions;
    footer.switches = done.switches;
    footer.gpus = std::move(gpus);
    return footer;
}

}  // namespace headway::cli
