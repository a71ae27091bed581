#include "policies/rules/greedy_policy.h"

#include "policies/rules/judgement.h"

namespace headway::policies {

GreedyPolicy::GreedyPolicy(RuleParameters parameters) : name_(parameters.text()) {
    parameters.expect_all_known();
}

Action GreedyPolicy::decide(const Observation&, const std::vector<Candidate>& candidates) {
    return {after_loss(candidates) ? least_lost_time(candidates) : fastest_candidate(candidates, kLeastGain)};
}

}  // namespace headway::policies
