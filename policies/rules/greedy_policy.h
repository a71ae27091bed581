#pragma once

#include <string>

#include "policies/policy.h"
#include "policies/rules/rule_parameters.h"

namespace headway::policies {

/// Always the candidate with the least predicted iteration, whatever the switch costs and however short the
/// disturbance; after a loss the one with the least predicted lost time.
class GreedyPolicy final : public Policy {
  public:
    explicit GreedyPolicy(RuleParameters parameters);
    std::string_view name() const override { return name_; }
    void start_episode(const ClusterFacts&, std::uint64_t) override {}
    Action decide(const Observation& observation, const std::vector<Candidate>& candidates) override;

  private:
    std::string name_;
};

}  // namespace headway::policies
