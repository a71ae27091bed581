#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "scenarios/language/plan.h"
#include "scenarios/timing/durations.h"

/// Random small plans and durations for the tests of timing.
namespace headway::scenarios::timing_test {

struct RandomPlan {
    Plan plan;
    bool tied_embedding = false;
    StepTimes times;
};

/// Any schedule and any switch, 1 to 6 stages, 1 to 4 replicas, 1 to 14 micro-batches; about half of the plans have
/// equal replicas, delays, messages or varying micro-batches each.
RandomPlan random_plan(std::uint64_t seed);

std::string describe(const RandomPlan& random);

}  // namespace headway::scenarios::timing_test
