#pragma once

#include <cstddef>
#include <string>

#include "policies/policy.h"
#include "policies/rules/rule_parameters.h"

namespace headway::policies {

/// Never changes the scenario's initial plan: what a job does that nobody watches. After a loss it waits for the
/// replacement. The base line that every other policy is measured against.
class StaticPolicy final : public Policy {
  public:
    explicit StaticPolicy(RuleParameters parameters) : name_(parameters.text()) { parameters.expect_all_known(); }
    std::string_view name() const override { return name_; }
    void start_episode(const ClusterFacts&, std::uint64_t) override {}
    Action decide(const Observation&, const std::vector<Candidate>&) override { return Action{0}; }

  private:
    std::string name_;
};

}  // namespace headway::policies
