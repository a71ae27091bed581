#pragma once

#include <string>

#include "policies/policy.h"
#include "policies/rules/rule_parameters.h"

namespace headway::policies {

/// Switches when a predicted gain over keeping exceeds `threshold` at `patience` decisions in a row and pays back its
/// pause within `horizon`; then takes the candidate that nets the most over the horizon. After a loss the one with the
/// least predicted lost time, at once. The defaults come from a sweep (policies/rules/README.md).
class HysteresisPolicy final : public Policy {
  public:
    /// Takes `threshold` (share of an iteration), `patience` (decisions), `horizon` (time).
    explicit HysteresisPolicy(RuleParameters parameters);
    std::string_view name() const override { return name_; }
    void start_episode(const ClusterFacts&, std::uint64_t) override { seen_in_a_row_ = 0; }
    Action decide(const Observation& observation, const std::vector<Candidate>& candidates) override;

  private:
    std::string name_;
    double threshold_;
    int patience_;
    scenarios::Duration horizon_;
    int seen_in_a_row_ = 0;
};

}  // namespace headway::policies
