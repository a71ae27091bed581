#pragma once

#include <cstdint>
#include <vector>

#include "policies/rules/plan_progress.h"
#include "policies/rules/schedule.h"

namespace headway::policies {

/// What a dynamic programme over times and plans needs: plan 0 is the initial one.
struct ScheduleProblem {
    std::vector<scenarios::Plan> plans;
    std::vector<PlanProgress> progress;  ///< [plans]
    Duration step;                       ///< between decisions
    Duration end;                        ///< of the episode
    std::int64_t iterations = 0;         ///< the episode ends when so many are trained; 0: at `end`
};

/// Schedule that trains the most useful iterations until the end (or the wanted ones first), if plans train as they did
/// when they were alone and switches take what scenarios/transfer says. Exact for its grid of times: best value over
/// (decision, plan) by forward dynamic programming; a switch or restart leads to the first decision after its pause. A
/// loss under a plan is waited out or answered by a restart under a plan that can run; a plan is not entered while
/// parts that it needs are away.
Schedule best_schedule(const ClusterFacts& facts, const ScheduleProblem& problem);

}  // namespace headway::policies
