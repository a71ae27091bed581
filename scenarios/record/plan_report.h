#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/language/plan.h"

namespace headway::scenarios {

/// One plan of `headway plan`.
struct PlanRow {
    Plan plan;
    int micro_batch = 1;  ///< sequences
    std::int64_t iteration_ns = 0;
    double tokens_per_s = 0.0;
    double mfu = 0.0;
    std::int64_t memory_bytes = 0;      ///< of the rank that leaves its GPU least room
    std::int64_t gpu_memory_bytes = 0;  ///< that this GPU has
    int fullest_stage = 0;
    std::string why;  ///< what limits it, and what sets it apart from the next
    /// Averages over workers; add up to the iteration.
    std::int64_t compute_ns = 0, bubble_ns = 0, tensor_ns = 0, pipeline_ns = 0, data_ns = 0, contention_ns = 0;
};

struct PlanReport {
    std::string scenario;
    std::string model;
    std::string state;           ///< of the cluster: "healthy", "at 12 min: ..."
    int gpus = 0;                ///< usable
    std::vector<PlanRow> plans;  ///< best first
    std::optional<PlanRow> own;  ///< the scenario's own plan, where it has one
    std::string own_problem;     ///< why the scenario's own plan cannot run; empty where it can, or where there is none
    std::int64_t layouts = 0, costed = 0, evaluated = 0, simulated = 0;  ///< how far the search had to go
    bool complete = true;                                                ///< false: interrupted
    std::string run_best;  ///< options that give another command the best plan; empty where none can
};

/// {"scenario","state","gpus","plans":[{"rank" (from 1),"layout","iteration_s","tokens_per_s","mfu","memory_gib",
/// "gpu_memory_gib","why", the degrees, "schedule","recompute","micro_batch","gpus","time_share":{"compute","bubble",
/// "tensor","pipeline","data","contention"},"layers_per_stage" (one list, or where replicas differ one a replica),
/// "micro_batches_per_replica","placement" (null: rank r on GPU r)}],"own" (a plan, or null),"layouts","costed",
/// "evaluated","simulated","complete"} on one line.
std::string plans_json(const PlanReport& report);
/// The same for people.
std::string plans_text(const PlanReport& report);

}  // namespace headway::scenarios
