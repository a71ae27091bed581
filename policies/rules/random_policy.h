#pragma once

#include <string>

#include "policies/policy.h"
#include "policies/rules/rule_parameters.h"
#include "policies/rules/schedule.h"

namespace headway::policies {

/// Random search at equal budget: plays the episode as often in a what-if world as the oracle may, with random
/// switches, and does the best of it again. What a clever search is worth is what it gains over this.
class RandomPolicy final : public Policy {
  public:
    /// Takes `tries` (episodes) and `switching` (probability of a switch at a decision). Needs `resources.worlds`.
    RandomPolicy(RuleParameters parameters, const PolicyResources& resources);
    std::string_view name() const override { return name_; }
    void start_episode(const ClusterFacts& facts, std::uint64_t seed) override;
    Action decide(const Observation& observation, const std::vector<Candidate>& candidates) override {
        return follower_.decide(observation, candidates);
    }
    std::span<const scenarios::Plan> further_plans() const override { return follower_.further_plans(); }

  private:
    std::string name_;
    PolicyResources resources_;
    int tries_;
    double switching_;
    ScheduleFollower follower_;
};

}  // namespace headway::policies
