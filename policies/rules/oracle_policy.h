#pragma once

#include "policies/rules/rehearsed_policy.h"

namespace headway::policies {

/// Knows the future: plays the episode beforehand in what-if worlds of the same scenario and seed, and does what turned
/// out best there. The line that every policy is measured against; never to be deployed.
///
/// 1. The rules and the best single plan in hindsight (best_static_policy.h) play the episode; plans that looked good
/// anywhere form a pool.
/// 2. Each plan of the pool trains alone through the whole episode.
/// 3. A dynamic programme over times and plans puts a schedule together (schedule_search.h).
/// 4. The schedule is played; what the generator offers on the way joins the pool, and 2 and 3 are done once more.
/// 5. Of everything that was played, rules included, the one with the most useful iterations per time is followed.
///
/// So it is never below a rule in its own world. It is a bound from below on what clairvoyance is worth: plans outside
/// the pool are not considered.
class OraclePolicy final : public RehearsedPolicy {
  public:
    /// Takes `plans` (size of the pool). Needs `resources.worlds`.
    OraclePolicy(RuleParameters parameters, const PolicyResources& resources);

  private:
    void rehearse(Rehearsal& rehearsal, const ClusterFacts& facts, std::uint64_t seed) override;

    int pool_size_;
};

}  // namespace headway::policies
