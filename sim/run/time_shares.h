#pragma once

#include "scenarios/record/run_events.h"
#include "sim/iteration/plan_model.h"

namespace headway::sim {

/// Where the time of the healthy iteration of a plan goes, averaged over its GPUs; the parts add up to its duration. Bubble is
/// what would be left of the waiting if messages took no time; the rest of it is exposed pipeline communication. What
/// contention adds to the healthy iteration counts as exposed data communication.
scenarios::TimeShares healthy_shares(PlanModel& model, const ClusterState& healthy, const IterationTimes& times);

/// The shares of an iteration that took `duration_ns`: longer than healthy is straggling, shorter shrinks every part alike. Adds
/// up exactly.
scenarios::TimeShares shares_of(const scenarios::TimeShares& healthy, std::int64_t duration_ns);

std::int64_t sum_of(const scenarios::TimeShares& shares);

}  // namespace headway::sim
