#include "policies/shadow.h"

#include <utility>

#include "policies/rules/judgement.h"

namespace headway::policies {

ShadowedPolicy::ShadowedPolicy(std::unique_ptr<Policy> policy, std::unique_ptr<Policy> shadow, int interval)
    : policy_(std::move(policy)), shadow_(std::move(shadow)), interval_(interval) {
    choice_.policy = shadow_->name();
}

void ShadowedPolicy::start_episode(const ClusterFacts& facts, std::uint64_t seed) {
    policy_->start_episode(facts, seed);
    shadow_->start_episode(facts, seed);
    choice_.chosen = 0;
    choice_.regret_ns = 0;
    wanted_.reset();
}

Action ShadowedPolicy::decide(const Observation& observation, const std::vector<Candidate>& candidates) {
    const Action acts = policy_->decide(observation, candidates);
    const Action would = shadow_->decide(observation, candidates);
    const Candidate& done = candidates[acts.candidate];
    const Candidate& other = candidates.at(would.candidate);
    choice_.chosen = static_cast<int>(would.candidate);
    choice_.regret_ns = 0;
    if (after_loss(candidates)) {
        wanted_.reset();
        choice_.regret_ns = (predicted_lost_time(other, candidates[0]) - predicted_lost_time(done, candidates[0])).ns();
        return acts;
    }
    if (would.candidate != acts.candidate) {
        Duration regret = (other.predicted.iteration - done.predicted.iteration) * interval_;
        if (!wanted_ || *wanted_ != other.plan) regret += other.predicted.pause;
        choice_.regret_ns = (regret - done.predicted.pause).ns();
    }
    wanted_.reset();
    if (would.candidate != 0) wanted_ = other.plan;
    return acts;
}

}  // namespace headway::policies
