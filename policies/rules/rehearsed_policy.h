#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "policies/policy.h"
#include "policies/rules/rehearsal.h"
#include "policies/rules/rule_parameters.h"
#include "policies/rules/schedule.h"

namespace headway::policies {

/// Plays the episode beforehand in what-if worlds and then follows the best that was played. How it is rehearsed is up
/// to those who derive from it.
class RehearsedPolicy : public Policy {
  public:
    std::string_view name() const override { return name_; }
    void start_episode(const ClusterFacts& facts, std::uint64_t seed) override {
        Rehearsal rehearsal(resources_, seed);
        rehearse(rehearsal, facts, seed);
        follower_ = ScheduleFollower(rehearsal.best(), name_);
        follower_.start_episode(facts, seed);
    }
    Action decide(const Observation& observation, const std::vector<Candidate>& candidates) override {
        return follower_.decide(observation, candidates);
    }
    std::span<const scenarios::Plan> further_plans() const override { return follower_.further_plans(); }

  protected:
    /// Needs `resources.worlds`.
    RehearsedPolicy(std::string name, const PolicyResources& resources)
        : name_(std::move(name)), resources_(resources), follower_({}, name_) {}
    const PolicyResources& resources() const { return resources_; }
    /// Plays at least one episode.
    virtual void rehearse(Rehearsal& rehearsal, const ClusterFacts& facts, std::uint64_t seed) = 0;

  private:
    std::string name_;
    PolicyResources resources_;
    ScheduleFollower follower_;
};

}  // namespace headway::policies
