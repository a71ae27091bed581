#pragma once

#include <string>

#include "scenarios/language/plan.h"
#include "scenarios/language/scenario.h"

namespace headway::tests {

/// A job of four GPUs on two nodes, two stages of two replicas, small enough for every implementation. `disturbances`
/// is the YAML list of that key, `run` the mapping.
scenarios::Scenario contract_scenario(const std::string& disturbances = "[]",
                                      const std::string& run = "{iterations: 40}");

/// A plan of that job on GPUs 0 and 1 alone, the two stages of one replica.
scenarios::Plan plan_on_one_node(const scenarios::Scenario& scenario);

/// The same with node 1 lost in the middle of training, checkpoints every few iterations and a short repair.
scenarios::Scenario contract_scenario_with_loss();

}  // namespace headway::tests
