#pragma once

#include <memory>
#include <optional>

#include "policies/policy.h"
#include "scenarios/record/run_events.h"

namespace headway::policies {

/// Lets a second policy look over the shoulder of the one that acts: at every decision it is asked too, and what it
/// would have done is kept with its predicted regret. It changes nothing.
///
/// Regret until the next decision: the iterations of one interval at the difference of the predicted iterations (its
/// choice minus what was done), and the pauses of the switches. A plan that it wants at several decisions in a row is
/// charged its pause at the first, since there it would have switched. After a loss: the difference of the predicted
/// lost times.
class ShadowedPolicy final : public Policy {
  public:
    /// `interval`: iterations between decisions.
    ShadowedPolicy(std::unique_ptr<Policy> policy, std::unique_ptr<Policy> shadow, int interval);
    std::string_view name() const override { return policy_->name(); }
    void start_episode(const ClusterFacts& facts, std::uint64_t seed) override;
    Action decide(const Observation& observation, const std::vector<Candidate>& candidates) override;
    std::span<const scenarios::Plan> further_plans() const override { return policy_->further_plans(); }

    /// At the last decision.
    const scenarios::ShadowChoice& choice() const { return choice_; }

  private:
    std::unique_ptr<Policy> policy_;
    std::unique_ptr<Policy> shadow_;
    int interval_;
    scenarios::ShadowChoice choice_;
    std::optional<scenarios::Plan> wanted_;  ///< by the shadow at the decision before, where that was a switch
};

}  // namespace headway::policies
