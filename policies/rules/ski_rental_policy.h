#pragma once

#include <array>
#include <string>

#include "policies/policy.h"
#include "policies/rules/rule_parameters.h"

namespace headway::policies {

/// Escalates as GREYHOUND does (Wu et al., ATC 2025), since nobody knows how long a slowdown will last: measures are
/// tried from the cheapest level up, the first at once, each other when what was lost for want of it since the slowdown
/// began has reached what it costs. That never costs more than twice what knowing the end would have (the ski-rental
/// bound).
///
/// Levels: shares of micro-batches; layers or places; degrees. What a level loses is the time that its best candidate
/// would have saved; a level at which nothing gains has no slowdown and starts from nothing again. After a loss: the
/// least predicted lost time, at once.
class SkiRentalPolicy final : public Policy {
  public:
    explicit SkiRentalPolicy(RuleParameters parameters);
    std::string_view name() const override { return name_; }
    void start_episode(const ClusterFacts&, std::uint64_t) override;
    Action decide(const Observation& observation, const std::vector<Candidate>& candidates) override;

    static constexpr std::size_t kLevels = 3;

  private:
    std::string name_;
    std::array<scenarios::Duration, kLevels> lost_;  ///< since the slowdown began
    scenarios::Duration decided_at_;
};

}  // namespace headway::policies
