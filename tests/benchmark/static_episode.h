#pragma once

#include <string>

#include "policies/episode.h"
#include "scenarios/language/scenario.h"
#include "sim/simulated_cluster.h"

namespace headway::benchmarks {

/// 2,000 iterations of GPT-3 1.3B on 64 A100s (tensor 2, pipeline 4, data 8). `disturbances` is the YAML list of that
/// key.
scenarios::Scenario sixty_four_gpus(const std::string& disturbances, const scenarios::Sensors& sensors = {});

/// Blocked airflow, a straggler, warm air, a slow link and a co-tenant, one after the other and together.
extern const char* const kMixedDisturbances;

struct StaticEpisode {
    std::int64_t decisions = 0;
    double simulated_s = 0.0;
};

/// One episode that never changes its plan, in decision intervals of ten iterations, on a new cluster with a new
/// generator: nothing is remembered from another one.
StaticEpisode static_episode(const scenarios::Scenario& scenario, const sim::SimulationOptions& options);

}  // namespace headway::benchmarks
