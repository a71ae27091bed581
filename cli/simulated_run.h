#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "policies/guardrails.h"
#include "policies/what_if.h"
#include "scenarios/language/plan.h"
#include "scenarios/language/scenario.h"
#include "scenarios/record/run_events.h"

namespace headway::cli {

/// Worlds in which nothing done counts, for policies that look ahead. They take the longest path, so that several may
/// live in a process beside the run itself, and heat as it does (`heat_together`, sim/simulated_cluster.h): what a
/// policy sees beforehand is then what it will see.
policies::WorldFactory what_if_worlds(const scenarios::Scenario& scenario, bool heat_together);

/// All guards of trained policies but those named: "ood", "rollback".
policies::GuardOptions guards_without(const std::vector<std::string>& off);

/// Who watches over the policy of a run.
struct Oversight {
    policies::GuardOptions guards;
    std::optional<std::filesystem::path> learn;  ///< a trained policy goes on learning and is written here at the end
    std::optional<std::string> shadow;           ///< policy that is asked too and does not act
};

/// Runs a scenario under its policy on the simulator from `plan` on and tells `sink` everything, from the header to the
/// footer. Ctrl-C ends it at the next decision: the footer then says that it was interrupted, and false is returned.
/// Once a process: SimGrid has one engine. `operations`: also tell every operation of every iteration.
bool run_simulation(const scenarios::Scenario& scenario, const scenarios::Plan& plan, const Oversight& oversight,
                    bool operations, scenarios::RunSink& sink);

}  // namespace headway::cli
