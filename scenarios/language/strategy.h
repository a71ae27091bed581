#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/language/adapt.h"
#include "scenarios/language/cluster.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"

/// The strategy language: the `strategy:` section of a scenario, and the initial plan that follows from it.
namespace headway::scenarios {

struct Strategy {
    Layout layout;                      ///< `data: auto` is resolved to GPUs used / (tensor x pipeline x context)
    std::vector<int> layers_per_stage;  ///< [pipeline x virtual_pipeline] in model order; empty: as even as possible
    std::vector<int> micro_batches_per_replica;  ///< [data]; empty: even, the first replicas one more
    std::vector<int> placement;                  ///< GPU of each rank; empty: rank r on GPU r
    int idle_gpus = 0;                           ///< the cluster's last GPUs, left unused where `placement` is empty
    Adapt adapt;                                 ///< what a policy may change at run time
    bool operator==(const Strategy&) const = default;
};

/// GPUs the job uses: those of `placement`, or all of the cluster but the idle ones.
int gpus_used(const Strategy& strategy, const Cluster& cluster);

/// Layers of each virtual stage, as even as possible; where they do not divide, the middle virtual stages get one more,
/// since the first and last hold embedding and logits.
std::vector<int> even_layers(int layers, int virtual_stages);

/// The plan a strategy means for this job and cluster. Throws std::invalid_argument where they contradict
/// (the YAML reader reports the same contradictions with file and line before it comes to this).
Plan initial_plan(const Strategy& strategy, const Job& job, const Cluster& cluster);

}  // namespace headway::scenarios
