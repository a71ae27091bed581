#pragma once

#include <string>

#include "scenarios/costs/iteration_costs.h"
#include "scenarios/language/scenario.h"
#include "scenarios/record/run_events.h"

namespace headway::scenarios {

/// Header of a run of `scenario` (resolved, generated disturbances included) under `policy`, starting from `plan`.
/// `healthy_iteration`: of that plan with nothing disturbed.
RunHeader make_run_header(const Scenario& scenario, const Plan& plan, const std::string& policy,
                          Duration healthy_iteration, const IterationCosts& costs);

}  // namespace headway::scenarios
