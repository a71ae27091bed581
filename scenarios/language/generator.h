#pragma once

#include <vector>

#include "scenarios/language/scenario.h"

namespace headway::scenarios {

/// Draws a timeline of disturbances for the scenario's cluster and job up to `end`, ordered by start. Each family draws
/// from a stream of its own, so that rates of one family change nothing of the others. A loss that would hit a part
/// while it is already gone is left out. Severity and duration are log-uniform in the family's ranges, starts a Poisson
/// process over all parts of the family. Throws std::invalid_argument where more than 100,000 events are to be
/// expected.
std::vector<Disturbance> generate_disturbances(const DisturbanceRates& rates, const Scenario& scenario, Duration end);

}  // namespace headway::scenarios
