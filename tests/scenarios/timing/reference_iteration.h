#pragma once

#include <cstdint>

#include "scenarios/language/plan.h"
#include "scenarios/timing/durations.h"

/// An iteration worked out a second time, on purpose in another way than the evaluator: workers walk through their
/// programs with clocks of their own, nothing is compiled, folded or turned into a graph.
namespace headway::scenarios::timing_test {

/// Nanoseconds from the start of the iteration to its end. Throws std::logic_error when the workers deadlock.
std::int64_t reference_iteration(const Plan& plan, bool tied_embedding, const StepTimes& times);

}  // namespace headway::scenarios::timing_test
