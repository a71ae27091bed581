#include "policies/guardrails.h"

#include <algorithm>
#include <utility>

#include "policies/learning/novelty.h"
#include "policies/rules/judgement.h"

namespace headway::policies {

GuardedPolicy::GuardedPolicy(std::unique_ptr<Policy> policy, std::unique_ptr<Policy> rule, const GuardOptions& options)
    : policy_(std::move(policy)), rule_(std::move(rule)), options_(options) {}

void GuardedPolicy::start_episode(const ClusterFacts& facts, std::uint64_t seed) {
    policy_->start_episode(facts, seed);
    rule_->start_episode(facts, seed);
    last_switch_.reset();
    bans_.clear();
}

bool GuardedPolicy::banned(const scenarios::Plan& plan) const {
    return std::any_of(bans_.begin(), bans_.end(), [&](const Ban& ban) { return ban.plan == plan; });
}

std::optional<std::size_t> GuardedPolicy::way_back(const Observation& observation,
                                                   const std::vector<Candidate>& candidates) const {
    if (!options_.rollback || !last_switch_ || after_loss(candidates)) return std::nullopt;
    const Switch& done = *last_switch_;
    if (observation.plan != done.to || observation.iteration <= Duration() || done.predicted <= Duration())
        return std::nullopt;
    const bool missed = observation.iteration > done.predicted.scaled(1.0 + options_.margin);
    if (!missed || observation.iteration <= done.before.scaled(1.0 + kLeastGain)) return std::nullopt;
    for (std::size_t i = 1; i < candidates.size(); ++i) {
        if (candidates[i].plan != done.from) continue;
        const Duration saved = options_.horizon.scaled(1.0 - done.before / observation.iteration);
        return saved > candidates[i].predicted.pause ? std::optional(i) : std::nullopt;
    }
    return std::nullopt;
}

Action GuardedPolicy::decide(const Observation& observation, const std::vector<Candidate>& candidates) {
    for (Ban& ban : bans_) --ban.decisions;
    while (!bans_.empty() && bans_.front().decisions <= 0) bans_.pop_front();

    Action chosen = policy_->decide(observation, candidates);
    const Action by_rule = rule_->decide(observation, candidates);
    const auto* novelty = dynamic_cast<const NoveltySource*>(policy_.get());
    if (options_.out_of_distribution && novelty != nullptr && novelty->novelty() > 1.0) {
        chosen = {by_rule.candidate, Action::By::kRule};
    }
    if (const auto back = way_back(observation, candidates)) {
        chosen = {*back, Action::By::kRollback};
        bans_.push_back({last_switch_->to, options_.banned_decisions});
    } else if (!after_loss(candidates) && banned(candidates[chosen.candidate].plan)) {
        chosen.candidate = 0;
    }
    last_switch_.reset();
    const Candidate& candidate = candidates[chosen.candidate];
    if (chosen.by != Action::By::kRollback && !after_loss(candidates) && candidate.plan != observation.plan) {
        last_switch_ = {observation.plan, candidate.plan, observation.iteration, candidate.predicted.iteration};
    }
    return chosen;
}

std::unique_ptr<Policy> make_guarded_policy(std::string_view name, const PolicyResources& resources,
                                            const GuardOptions& guards) {
    auto policy = make_policy(name, resources);
    if (dynamic_cast<const NoveltySource*>(policy.get()) == nullptr) return policy;
    return std::make_unique<GuardedPolicy>(std::move(policy), make_policy("hysteresis"), guards);
}

}  // namespace headway::policies
