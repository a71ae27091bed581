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

/// What a planner may choose: `tensor: auto` in the strategy sets `tensor` here, and the layout's own value is then 1
/// (`1f1b`, `none`), which means nothing. Whoever resolves a strategy puts its choice into `Strategy::layout` (and
/// `Job::micro_batch`) and clears the flags; everything else needs a strategy without them. `data: auto` alone is no
/// wildcard: it is what the other degrees leave and is resolved on reading. Beside an open tensor, pipeline or context
/// degree `data: auto` is one.
struct Wildcards {
    bool tensor = false;
    bool pipeline = false;
    bool data = false;
    bool context = false;
    bool virtual_pipeline = false;
    bool schedule = false;
    bool recompute = false;
    bool micro_batch = false;  ///< Job::micro_batch; `strategy.micro_batch: auto`
    bool any() const { return *this != Wildcards(); }
    bool operator==(const Wildcards&) const = default;
};

/// "tensor, pipeline": the keys that are `auto`, for messages.
std::string describe(const Wildcards& wildcards);

struct Strategy {
    Layout layout;                      ///< `data: auto` is resolved to GPUs used / (tensor x pipeline x context)
    Wildcards wildcards;                ///< what of the layout is still open
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

/// The plan a strategy means for this job and cluster. Throws std::invalid_argument where they contradict, or where
/// the strategy has wildcards
/// (the YAML reader reports the same contradictions with file and line before it comes to this).
Plan initial_plan(const Strategy& strategy, const Job& job, const Cluster& cluster);

}  // namespace headway::scenarios
