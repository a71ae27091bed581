#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "policies/action.h"
#include "policies/observation.h"

namespace headway::policies {

/// Decides at the end of every decision interval. Stateful policies are reset by `start_episode`. Deterministic: equal
/// observations and candidates in equal order give equal actions.
class Policy {
  public:
    virtual ~Policy() = default;
    virtual std::string_view name() const = 0;
    virtual void start_episode(std::uint64_t seed) = 0;
    /// `candidates` is never empty and candidate 0 keeps the plan.
    virtual Action decide(const Observation& observation, const std::vector<Candidate>& candidates) = 0;
};

struct PolicyEntry {
    std::string name;
    std::string description;
};

/// All policies that `make_policy` knows, in order of their names.
std::vector<PolicyEntry> registered_policies();

/// Throws std::invalid_argument naming the registered policies when `name` is none of them.
std::unique_ptr<Policy> make_policy(std::string_view name);

}  // namespace headway::policies
