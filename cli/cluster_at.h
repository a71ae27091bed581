#pragma once

#include <string>
#include <vector>

#include "scenarios/language/scenario.h"
#include "scenarios/timing/step_times.h"

namespace headway::cli {

/// A cluster as its scenario's disturbances leave it at one moment, for plans that are to last.
struct ClusterAt {
    scenarios::Conditions conditions;   ///< empty vectors where all is healthy
    std::vector<int> unavailable_gpus;  ///< lost and not replaced yet, ascending
    std::string what;                   ///< "healthy", "air conditioning of rack 2 fails; 8 GPUs lost"
};

/// Clocks are those that the heat of full load settles at under what is in force at `at`. A lost part is missing until
/// a spare or its repair takes its place, as in a run whose job uses every GPU. Delays of a rack's uplink count for all
/// messages of its nodes; GPUs of a job with measured times are as slow as they were measured; what is drawn anew for
/// every iteration (jitter, uneven sequences) and a slow hop's bandwidth are left out. Throws ConfigError as
/// sim::Timeline does.
ClusterAt cluster_at(const scenarios::Scenario& scenario, scenarios::Duration at);

}  // namespace headway::cli
