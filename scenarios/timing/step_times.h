#pragma once

#include <span>
#include <vector>

#include "scenarios/costs/iteration_costs.h"
#include "scenarios/timing/evaluator.h"

namespace headway::scenarios {

/// State of everything that can be slow, during one iteration. Empty vectors mean healthy.
struct Conditions {
    std::vector<GpuPace> gpus;               ///< [cluster GPUs]
    std::vector<double> node_network;        ///< [nodes] NIC bandwidth over nominal
    std::vector<Duration> node_delay;        ///< [nodes] added to every message a NIC of the node sends
    std::vector<Duration> hop_delay;         ///< [pipeline - 1] added to every send between stages k and k+1
    std::vector<double> micro_batch_factor;  ///< as in StepTimes
};

/// Puts costs and conditions together: a worker runs at the pace of its slowest member (tensor ranks work in lock
/// step), a collective at the pace of its slowest link.
StepTimes step_times(const IterationCosts& costs, const Plan& plan, const Cluster& cluster,
                     const Conditions& conditions);

}  // namespace headway::scenarios
