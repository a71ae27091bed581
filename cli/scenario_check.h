#pragma once

#include <string>
#include <vector>

#include "scenarios/language/plan.h"
#include "scenarios/language/read.h"
#include "scenarios/language/scenario.h"

namespace headway::cli {

/// The initial plan of a scenario. Throws ConfigError, naming the place of the strategy, for one that cannot be built
/// or does not fit in memory; every stage that does not is named with what it needs and has.
scenarios::Plan plan_that_fits(const scenarios::Scenario& scenario, const scenarios::KeyPlaces& places);

/// Throws ConfigError when no policy has this name.
void expect_policy(const std::string& name, const scenarios::KeyPlaces& places);

/// One line a stage: "stage 0: 71.3 of 80.0 GiB (parameters 4.2, gradients ...)".
std::vector<std::string> memory_lines(const scenarios::Scenario& scenario, const scenarios::Plan& plan);

}  // namespace headway::cli
