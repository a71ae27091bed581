#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "scenarios/language/plan.h"
#include "scenarios/language/scenario.h"
#include "scenarios/language/scenario_set.h"

/// Draws complete scenarios from a scenario set.
namespace headway::scenarios {

struct DrawnScenario {
    Scenario scenario;           ///< resolved and checked, named "SET INDEX"; its initial plan fits in memory
    Plan plan;                   ///< initial
    Duration healthy_iteration;  ///< of the initial plan, without contention
    std::string family;
};

struct DrawOptions {
    std::optional<std::string> family;  ///< absent: drawn by weight. Must be one of the stage's
    const SetStage* stage = nullptr;    ///< null: everything
};

/// Scenario `index` of the set: the same on every machine, whatever was drawn before. Layouts that are illegal or do
/// not fit are redrawn with their job and cluster, at most 200 times. Throws ConfigError naming the set when none fits,
/// std::invalid_argument for a family that the stage lacks.
DrawnScenario draw_scenario(const ScenarioSet& set, std::uint64_t index, const DrawOptions& options = {});

}  // namespace headway::scenarios
