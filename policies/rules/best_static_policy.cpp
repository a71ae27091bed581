#include "policies/rules/best_static_policy.h"

#include "policies/rules/judgement.h"
#include "policies/rules/plan_progress.h"
#include "policies/rules/rehearsal.h"

namespace headway::policies {

BestStaticPolicy::BestStaticPolicy(RuleParameters parameters, const PolicyResources& resources)
    : name_(parameters.text()), resources_(resources), tried_(parameters.count("plans", 12, 1, 100)) {
    parameters.expect_all_known();
}

void BestStaticPolicy::start_episode(const ClusterFacts& facts, std::uint64_t seed) {
    Rehearsal rehearsal(resources_, seed);
    PlanPool pool;
    const Duration end = rehearsal.play(*make_policy("static"), &pool).wall;
    for (const char* guide : {"greedy", "hysteresis"}) rehearsal.play(*make_policy(guide), &pool);

    plan_.clear();
    const auto trained = [&](const scenarios::Plan& plan) {
        const auto progress =
            PlanProgress::measure(rehearsal.world(), seed, plan, resources_.episode.decision_interval, end);
        return progress ? progress->iterations_at(end) : 0.0;
    };
    double most = trained(facts.initial_plan);
    for (const scenarios::Plan& plan : pool.best(static_cast<std::size_t>(tried_))) {
        if (plan == facts.initial_plan) continue;
        const double iterations = trained(plan);
        if (iterations <= most * (1.0 + kLeastGain)) continue;
        most = iterations;
        plan_ = {plan};
    }
}

Action BestStaticPolicy::decide(const Observation& observation, const std::vector<Candidate>& candidates) {
    if (plan_.empty() || after_loss(candidates)) return {0};
    if (observation.plan == plan_.front()) {
        plan_.clear();
        return {0};
    }
    for (std::size_t i = 1; i < candidates.size(); ++i) {
        if (candidates[i].plan == plan_.front()) return {i};
    }
    return {0};
}

}  // namespace headway::policies
