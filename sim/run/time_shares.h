#pragma once

#include "scenarios/record/run_events.h"
#include "sim/iteration/plan_model.h"

namespace headway::sim {

/// Where the time of a plan's healthy iteration goes (scenarios/timing/healthy_shares.h); what contention adds to it
/// counts as exposed data communication. The parts add up to its duration.
scenarios::TimeShares shares_of_healthy(PlanModel& model, const IterationTimes& times);

/// The shares of an iteration that took `duration_ns`: longer than healthy is straggling, shorter shrinks every part
/// alike. Adds up exactly.
scenarios::TimeShares shares_of(const scenarios::TimeShares& healthy, std::int64_t duration_ns);

std::int64_t sum_of(const scenarios::TimeShares& shares);

}  // namespace headway::sim
