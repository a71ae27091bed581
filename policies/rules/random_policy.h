#pragma once

#include "policies/rules/rehearsed_policy.h"

namespace headway::policies {

/// Random search at equal budget: plays the episode as often in a what-if world as the oracle may, with random
/// switches, and does the best of it again. What a clever search is worth is what it gains over this.
class RandomPolicy final : public RehearsedPolicy {
  public:
    /// Takes `tries` (episodes) and `switching` (probability of a switch at a decision). Needs `resources.worlds`.
    RandomPolicy(RuleParameters parameters, const PolicyResources& resources);

  private:
    void rehearse(Rehearsal& rehearsal, const ClusterFacts& facts, std::uint64_t seed) override;

    int tries_;
    double switching_;
};

}  // namespace headway::policies
