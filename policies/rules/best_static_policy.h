#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policies/policy.h"
#include "policies/rules/rule_parameters.h"

namespace headway::policies {

/// The best single plan in hindsight: what a careful operator who knew the future would start with and never touch
/// again. Plans that the simple rules were offered anywhere in the episode, and the initial one, train alone through it
/// in a what-if world; the one that trains most is taken at the first decision and kept. After a loss it waits for the
/// replacement, as static does. What a policy gains over this is what adapting is worth, apart from a better start.
class BestStaticPolicy final : public Policy {
  public:
    /// Takes `plans` (how many are tried). Needs `resources.worlds`.
    BestStaticPolicy(RuleParameters parameters, const PolicyResources& resources);
    std::string_view name() const override { return name_; }
    void start_episode(const ClusterFacts& facts, std::uint64_t seed) override;
    Action decide(const Observation& observation, const std::vector<Candidate>& candidates) override;
    std::span<const scenarios::Plan> further_plans() const override { return plan_; }

  private:
    std::string name_;
    PolicyResources resources_;
    int tried_;
    std::vector<scenarios::Plan> plan_;  ///< to be taken; empty: the initial one, or reached
};

}  // namespace headway::policies
