#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "policies/training_cluster.h"
#include "scenarios/costs/checkpoint.h"
#include "scenarios/language/scenario.h"
#include "scenarios/record/run_events.h"
#include "sim/disturbances/timeline.h"
#include "sim/iteration/plan_model.h"
#include "sim/simulated_cluster.h"
#include "sim/thermal/fleet.h"

namespace headway::sim {

/// A plan with what is known of it when healthy.
struct PreparedPlan {
    scenarios::Plan plan;
    std::uint64_t number = 0;
    std::unique_ptr<PlanModel> model;
    IterationTimes healthy;
    scenarios::TimeShares shares;
    scenarios::CheckpointCosts checkpoint;
    std::vector<double> busy;          ///< [GPUs] of the healthy iteration; below 0: not in the job
    std::vector<double> pace;          ///< [GPUs] that heat leaves in it, in the facility's own air
    int shuts_down = -1;               ///< GPU that is too hot even in it
    std::vector<std::int64_t> memory;  ///< [workers] bytes of a rank
    std::vector<double> tensor_bus;    ///< [workers] healthy bus bandwidth of their tensor groups; empty without
};

/// What all worlds of one scenario share: the scenario, the parts of its cluster, and what is known of the plans that
/// any of them has run (the latest 32). Nothing in it depends on what happened in a world. For one thread.
class Site {
  public:
    /// Throws scenarios::ConfigError where the initial plan does not fit in memory or the air is too warm for it.
    Site(const scenarios::Scenario& scenario, const SimulationOptions& options);

    /// Throws std::invalid_argument for a plan that the job or the cluster cannot run.
    std::shared_ptr<PreparedPlan> prepared(const scenarios::Plan& plan);

    const scenarios::Scenario scenario;
    const SimulationOptions options;
    const Topology topology;
    const Timeline timeline;
    const Environment healthy;
    const Fleet fleet;  ///< at rest: worlds begin with copies of it
    policies::ClusterFacts facts;

  private:
    struct Known {
        std::uint64_t hash = 0;
        std::uint64_t used = 0;  ///< the latest has the highest
        std::shared_ptr<PreparedPlan> plan;
    };
    std::shared_ptr<PreparedPlan> prepare(const scenarios::Plan& plan);

    SharedNetwork network_;
    std::vector<Known> known_;
    std::uint64_t asked_ = 0;
    std::uint64_t plans_seen_ = 0;
};

/// Share of the time that kernels run on each GPU of the cluster in such an iteration; below 0: not in the job.
std::vector<double> busy_of(const scenarios::Plan& plan, const IterationTimes& times, int gpus);

/// Puts together what thermal pace and environment leave of every GPU.
std::vector<scenarios::GpuPace> paces_of(const Topology& topology, const Environment& environment,
                                         const std::vector<double>& thermal_pace);

}  // namespace headway::sim
