#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/language/cluster.h"
#include "scenarios/language/disturbance.h"
#include "scenarios/language/job.h"
#include "scenarios/language/strategy.h"

namespace headway::scenarios {

struct RunLength {
    int iterations = 100;          ///< used when `time` is absent
    std::optional<Duration> time;  ///< run for this long instead
    bool operator==(const RunLength&) const = default;
};

/// Everything a run is told. Resolved: catalogue names replaced by their entries, every default filled in.
struct Scenario {
    std::string name;
    std::string description;
    Job job;
    Cluster cluster;
    Strategy strategy;
    std::vector<Disturbance> disturbances;
    std::optional<DisturbanceRates>
        generate;  ///< further disturbances are drawn from these on reading; empty once resolved
    std::string policy = "static";
    std::uint64_t seed = 1;
    RunLength run;
    int decision_interval = 10;  ///< iterations between decisions
    Duration telemetry_period = Duration::seconds(10);
    Sensors sensors;
    Switching switching;
    bool operator==(const Scenario&) const = default;
};

}  // namespace headway::scenarios
