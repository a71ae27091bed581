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

/// How a run is deployed on real processors; a simulation ignores it.
struct Deployment {
    /// Host ranks: every operation lasts as long as the cost model says for the GPU that the cluster declares, times
    /// this, so that many ranks on few cores behave like as many devices. Absent: as fast as they can.
    std::optional<double> pace;
    Duration timeout = Duration::seconds(60);  ///< a rank that is not heard of for so long is lost
    std::optional<std::string> checkpoints;    ///< folder, relative to the scenario's; absent: none are written
    int keep = 2;                              ///< of the newest checkpoints so many stay
    bool operator==(const Deployment&) const = default;
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
    std::optional<Deployment> deploy;  ///< absent: the defaults
    bool operator==(const Scenario&) const = default;
};

}  // namespace headway::scenarios
