#pragma once

#include <cstddef>

#include "policies/policy.h"

namespace headway::policies {

/// Never changes the scenario's initial plan: what a job does that nobody watches. After a loss it waits for the
/// replacement. The base line that every other policy is measured against.
class StaticPolicy final : public Policy {
  public:
    std::string_view name() const override { return "static"; }
    void start_episode(const ClusterFacts&, std::uint64_t) override {}
    Action decide(const Observation&, const std::vector<Candidate>&) override { return Action{0}; }
};

}  // namespace headway::policies
