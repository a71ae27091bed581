#pragma once

#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"

namespace headway::backend {

/// Where a process stands in a plan. Process p is GPU p.
struct PlanPlace {
    int rank = -1;  ///< -1: nowhere, the process is idle
    int tensor = 0;
    int replica = 0;
    int stage = 0;
    bool idle() const { return rank < 0; }
};

PlanPlace place_in_plan(const scenarios::Plan& plan, int process);

/// Whether a plan can run for real. Throws std::invalid_argument that says what is wrong: context parallelism, a rank
/// without a process of its own, a replica without a micro-batch, shares that do not add up to the global batch, layers
/// that do not add up to the model.
void check_trainable(const scenarios::Job& job, const scenarios::Plan& plan);

}  // namespace headway::backend
