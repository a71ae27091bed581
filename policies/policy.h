#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policies/action.h"
#include "policies/episode_options.h"
#include "policies/observation.h"
#include "policies/what_if.h"

namespace headway::policies {

/// Decides at the end of every decision interval. Stateful policies are reset by `start_episode`. Deterministic: equal
/// facts, seed, observations and candidates in equal order give equal actions.
class Policy {
  public:
    virtual ~Policy() = default;
    virtual std::string_view name() const = 0;
    virtual void start_episode(const ClusterFacts& facts, std::uint64_t seed) = 0;
    /// `candidates` is never empty and candidate 0 keeps the plan.
    virtual Action decide(const Observation& observation, const std::vector<Candidate>& candidates) = 0;
    /// Plans that the next decision wants to choose from besides the generator's own; offered where they are legal.
    virtual std::span<const scenarios::Plan> further_plans() const { return {}; }
};

struct PolicyEntry {
    std::string name;
    std::string description;
    bool looks_ahead = false;  ///< needs PolicyResources::worlds
};

/// All policies that `make_policy` knows, in order of their names.
std::vector<PolicyEntry> registered_policies();

/// What policies may need besides observations.
struct PolicyResources {
    WorldFactory worlds;     ///< for those that look ahead; may be empty
    EpisodeOptions episode;  ///< how the episode will be run: for those that look ahead
};

/// A registered policy by name, with parameters after a colon ("hysteresis:threshold=0.05,patience=2"), or a trained
/// one by its file (a name that ends in ".policy"). Throws std::invalid_argument that says what is allowed when `name`
/// is none of them, has parameters that the policy does not take, or needs worlds that are not there, and
/// scenarios::ConfigError for a policy file that cannot be used.
std::unique_ptr<Policy> make_policy(std::string_view name, const PolicyResources& resources = {});

/// Throws what `make_policy` would throw for this name where worlds are there: for input that is checked before a run.
void check_policy(std::string_view name);

}  // namespace headway::policies
