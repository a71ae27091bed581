#pragma once

#include "scenarios/language/cluster.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"

namespace headway::scenarios {

/// Whether a plan belongs to this job and cluster: one existing GPU a rank, no GPU twice, every replica holds all
/// layers (no cell fewer than 0) and at least one micro-batch, and the shares add up to the global batch. Memory is
/// another matter: see costs/memory.h. Throws std::invalid_argument that says what is wrong.
void check_plan(const Job& job, const Cluster& cluster, const Plan& plan);

}  // namespace headway::scenarios
