#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/costs/iteration_costs.h"
#include "scenarios/timing/evaluator.h"

namespace headway::scenarios {

/// Where the time of a healthy iteration goes, averaged over workers, in nanoseconds. The parts add up to
/// `iteration_ns` exactly.
struct HealthyShares {
    std::int64_t iteration_ns = 0;
    std::int64_t compute_ns = 0;   ///< forward, backward and optimizer without tensor communication
    std::int64_t bubble_ns = 0;    ///< idle although messages and collectives of the data dimension are free
    std::int64_t tensor_ns = 0;    ///< exposed tensor and context communication
    std::int64_t pipeline_ns = 0;  ///< what the iteration would gain if messages between stages were free
    std::int64_t data_ns = 0;      ///< what it would gain then if reductions and gathering were free as well
};

/// `tensor_ns` [workers] is the exposed tensor and context communication inside each worker's compute, over the
/// iteration.
HealthyShares healthy_shares(Evaluator& evaluator, const StepTimes& healthy,
                             const std::vector<std::int64_t>& tensor_ns);

/// The same from costs, with everything healthy.
HealthyShares healthy_shares(const IterationCosts& costs, const Plan& plan, const Cluster& cluster,
                             bool tied_embedding);

}  // namespace headway::scenarios
