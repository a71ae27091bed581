#include "cli/scenario_check.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "policies/policy.h"
#include "scenarios/costs/memory.h"
#include "scenarios/language/strategy.h"

namespace headway::cli {

namespace {

std::string gib(scenarios::Bytes bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", bytes.in_gib());
    return text;
}

/// The smallest memory among the GPUs that hold a stage.
scenarios::Bytes smallest_memory(const scenarios::Scenario& scenario, const scenarios::Plan& plan, int stage) {
    scenarios::Bytes least = scenario.cluster.gpu_type(plan.gpu_of_worker(0, stage, 0)).memory;
    for (int replica = 0; replica < plan.layout.data; ++replica) {
        for (int member = 0; member < plan.layout.ranks_per_worker(); ++member) {
            least = std::min(least, scenario.cluster.gpu_type(plan.gpu_of_worker(replica, stage, member)).memory);
        }
    }
    return least;
}

}  // namespace

scenarios::Plan plan_that_fits(const scenarios::Scenario& scenario, const scenarios::KeyPlaces& places) {
    scenarios::Plan plan;
    try {
        plan = scenarios::initial_plan(scenario.strategy, scenario.job, scenario.cluster);
    } catch (const std::invalid_argument& error) {
        throw places.error("strategy", error.what());
    }
    const auto shortages = scenarios::memory_shortages(scenario.job, scenario.cluster, plan);
    if (shortages.empty()) return plan;
    std::string message = "does not fit in memory:";
    for (const scenarios::MemoryShortage& shortage : shortages) {
        message += "\n  stage " + std::to_string(shortage.stage) + " needs " + gib(shortage.needed) + " GiB, GPU " +
                   std::to_string(shortage.gpu) + " (" + scenario.cluster.gpu_type(shortage.gpu).name + ") has " +
                   gib(shortage.available) + " GiB";
    }
    throw places.error("strategy",
                       message +
                           "\n  (more tensor or pipeline parallelism, more recompute, a smaller micro_batch or "
                           "distributed_optimizer: true need less)");
}

void expect_policy(const std::string& name, const scenarios::KeyPlaces& places) {
    try {
        policies::check_policy(name);
    } catch (const std::invalid_argument& error) {
        throw places.error("policy", error.what());
    }
}

std::vector<std::string> memory_lines(const scenarios::Scenario& scenario, const scenarios::Plan& plan) {
    std::vector<std::string> lines;
    const auto stages = scenarios::stage_memory(scenario.job, plan);
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
        const scenarios::StageMemory& needed = stages[stage];
        lines.push_back("stage " + std::to_string(stage) + ": " + gib(needed.total()) + " of " +
                        gib(smallest_memory(scenario, plan, static_cast<int>(stage))) + " GiB (parameters " +
                        gib(needed.parameters) + ", gradients " + gib(needed.gradients) + ", optimizer " +
                        gib(needed.optimizer) + ", activations " + gib(needed.activations) + ", reserve " +
                        gib(needed.reserve) + ")");
    }
    return lines;
}

}  // namespace headway::cli
