#pragma once

#include <cstdint>

#include "scenarios/language/units.h"

namespace headway::policies {

/// What became of one decision: from the moment it was taken to the next one, pauses of its switch or recovery
/// included.
struct Interval {
    std::int64_t iterations = 0;       ///< trained
    std::int64_t iterations_lost = 0;  ///< rolled back, to be trained again
    scenarios::Duration wall;
    bool last = false;       ///< no further decision in this episode
    bool truncated = false;  ///< last, because the episode's length was reached and not because the job was over
};

/// Useful work of the interval over what the healthy initial plan would have done in the same time: 1 when healthy,
/// negative when more was rolled back than trained. 0 for an empty interval.
double reward(const Interval& interval, scenarios::Duration healthy_iteration);

}  // namespace headway::policies
