#pragma once

#include <cstdint>

#include "scenarios/language/units.h"

namespace headway::policies {

struct EpisodeOptions {
    int decision_interval = 10;       ///< iterations
    std::int64_t max_iterations = 0;  ///< useful iterations to train; 0: until the cluster says that the scenario ended
    scenarios::Duration max_time;     ///< the episode ends with the interval in which this is reached; 0: no limit
    std::uint64_t seed = 1;
};

}  // namespace headway::policies
