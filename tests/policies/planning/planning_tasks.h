#pragma once

#include "policies/planning/layout_space.h"
#include "tests/scenarios/costs/shipped_job.h"

namespace headway::tests {

/// A GPT of 4 layers on `nodes` DGX A100, 32 sequences a step, everything but the micro-batch open.
inline policies::PlanningTask small_planning_task(int nodes) {
    policies::PlanningTask task;
    task.job = scenarios::job_of(scenarios::gpt(4, 1024, 16, 1024), 1, 32);
    task.cluster = scenarios::dgx_a100(nodes);
    task.strategy = policies::opened({});
    return task;
}

}  // namespace headway::tests
