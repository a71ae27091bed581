#pragma once

#include <vector>

#include "scenarios/language/disturbance.h"
#include "scenarios/language/random.h"
#include "scenarios/language/scenario.h"
#include "scenarios/language/scenario_set.h"

namespace headway::scenarios {

/// The disturbances of one family on a scenario whose job, cluster, strategy and run are drawn already, ordered by
/// start. A cause on an uplink acts on a node's network where there is a single rack. Where several strike, they strike
/// different parts as far as there are enough.
std::vector<Disturbance> draw_causes(const ScenarioFamily& family, const Scenario& scenario, const Plan& plan,
                                     RandomStream& stream);

}  // namespace headway::scenarios
