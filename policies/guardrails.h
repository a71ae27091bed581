#pragma once

#include <deque>
#include <memory>
#include <optional>

#include "policies/policy.h"

namespace headway::policies {

/// Which guards watch over a policy. Each can be switched off, to show what it is worth.
struct GuardOptions {
    bool out_of_distribution = true;  ///< a rule decides where the policy was not trained (learning/novelty.h)
    bool rollback = true;             ///< a switch that misses its prediction is taken back
    double margin = 0.15;             ///< by which a measured iteration may exceed its prediction
    Duration horizon = Duration::seconds(1800.0);  ///< within which the way back has to pay its pause
    int banned_decisions = 20;                     ///< for which a plan that was taken back is not tried again
};

/// A policy with guards around it. What it chooses is legal in any case, since only legal candidates are offered; the
/// guards are about what is legal and unwise.
///
/// Out of distribution: where the policy says that it was shown what it was not trained on, `rule` decides. It sees
/// every decision, so that it knows what went before. Rollback: when the first interval after a switch takes more than
/// `margin` longer than predicted and longer than before the switch, the job goes back to the plan before (where that
/// is offered), and the plan that failed is not chosen again for a while.
class GuardedPolicy final : public Policy {
  public:
    GuardedPolicy(std::unique_ptr<Policy> policy, std::unique_ptr<Policy> rule, const GuardOptions& options);
    std::string_view name() const override { return policy_->name(); }
    void start_episode(const ClusterFacts& facts, std::uint64_t seed) override;
    Action decide(const Observation& observation, const std::vector<Candidate>& candidates) override;
    std::span<const scenarios::Plan> further_plans() const override { return policy_->further_plans(); }

    Policy& policy() { return *policy_; }

  private:
    struct Switch {
        scenarios::Plan from;
        scenarios::Plan to;
        Duration before;     ///< measured iteration
        Duration predicted;  ///< iteration
    };
    struct Ban {
        scenarios::Plan plan;
        int decisions = 0;  ///< still to go
    };
    std::optional<std::size_t> way_back(const Observation& observation, const std::vector<Candidate>& candidates) const;
    bool banned(const scenarios::Plan& plan) const;

    std::unique_ptr<Policy> policy_;
    std::unique_ptr<Policy> rule_;
    GuardOptions options_;
    std::optional<Switch> last_switch_;  ///< the last decision's
    std::deque<Ban> bans_;
};

/// What a run is decided by: `make_policy`, and for a trained policy the guards around it, with tuned hysteresis as the
/// rule. Rules are as they are.
std::unique_ptr<Policy> make_guarded_policy(std::string_view name, const PolicyResources& resources,
                                            const GuardOptions& guards);

}  // namespace headway::policies
