#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/costs/iteration_costs.h"
#include "scenarios/language/cluster.h"
#include "scenarios/language/plan.h"

/// Clusters, plans and costs made by hand, so that a test knows every figure. Nothing of them comes from the cost
/// model.
namespace headway::sim::tests {

/// GPU with simple figures: boost 1500 MHz, limit 400 W, idle 60 W, thermal as an H800 (0.024 K/W at 0.7 s, 0.049 K/W
/// at 43 s).
scenarios::GpuType plain_gpu();

/// `nodes` nodes of `gpus` GPUs with a NIC each of 25 GB/s, `nodes_per_rack` to a rack.
scenarios::Cluster plain_cluster(int nodes, int gpus, int nodes_per_rack, double oversubscription = 1.0);

/// Rank r on GPU r; `micro_batches` for each replica; one layer a virtual stage.
scenarios::Plan plain_plan(int tensor, int pipeline, int data, int micro_batches,
                           scenarios::Schedule schedule = scenarios::Schedule::kOneForwardOneBackward,
                           int virtual_pipeline = 1);

struct PlainCosts {
    double forward_ms = 10.0;
    double backward_ms = 20.0;
    double compute_bound = 1.0;  ///< share of both that scales with the clock
    double message_ms = 1.0;     ///< across nodes; a tenth of it is overhead; inside a node a tenth of the whole
    double reduce_ms = 30.0;     ///< a stage's gradients, at three quarters of the wire's pace
    double gather_ms = 0.0;
    double optimizer_ms = 5.0;
};

/// Costs of a plan with these times; bytes follow from the cluster's NIC bandwidth.
scenarios::IterationCosts plain_costs(const scenarios::Plan& plan, const scenarios::Cluster& cluster,
                                      const PlainCosts& times = {});

}  // namespace headway::sim::tests
