#include "cli/wildcards.h"

#include <cstdio>
#include <functional>
#include <optional>
#include <stdexcept>
#include <vector>

#include "cli/contended_times.h"
#include "cli/interrupt.h"
#include "cli/standard_output.h"
#include "scenarios/language/words.h"
#include "scenarios/record/figures.h"
#include "scenarios/record/progress.h"

namespace headway::cli {

namespace {

constexpr std::size_t kLongestList = 256;

std::string list_text(const std::vector<int>& numbers) {
    std::string text;
    for (const int number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
    return "[" + text + "]";
}

std::string nothing_fits(const scenarios::Cluster& cluster, const policies::SearchResult& result) {
    const policies::ClosestShortage& closest = *result.closest;
    char text[160];
    std::snprintf(text, sizeof text, " needs %.1f GiB on stage %d, GPU %d (%s) has %.1f GiB", closest.needed.in_gib(),
                  closest.stage, closest.gpu, cluster.gpu_type(closest.gpu).name.c_str(), closest.available.in_gib());
    return "none of " + scenarios::count_text(static_cast<double>(result.legal)) +
           " legal layouts fits in memory; the closest, " + scenarios::describe(closest.point.layout) + "," + text +
           " (more GPUs, a smaller micro_batch or distributed_optimizer: true need less)";
}

}  // namespace

policies::SearchResult search_with_progress(const policies::PlanningTask& task, policies::SearchOptions options,
                                            const scenarios::KeyPlaces& places) {
    catch_interrupts();
    scenarios::ProgressLine line;
    options.go_on = [&](const policies::SearchResult& so_far) {
        line.show("planning: " + scenarios::count_text(static_cast<double>(so_far.legal)) + " layouts, " +
                  std::to_string(so_far.costed) + " with costs, " + std::to_string(so_far.evaluated) + " evaluated");
        return !interrupted();
    };
    policies::SearchResult result;
    try {
        result = policies::search_layouts(task, options);
    } catch (const std::invalid_argument& error) {
        throw places.error("strategy", error.what());
    }
    if (result.plans.empty() && result.closest) throw places.error("strategy", nothing_fits(task.cluster, result));
    return result;
}

bool resolve_wildcards(scenarios::Scenario& scenario, const scenarios::KeyPlaces& places) {
    if (!scenario.strategy.wildcards.any()) return true;
    policies::PlanningTask task;
    task.job = scenario.job;
    task.cluster = scenario.cluster;
    task.strategy = scenario.strategy;
    task.layers_apart = false;
    ContendedTimes contended(scenario, task, std::nullopt);
    policies::SearchOptions options;
    options.plans = 1;
    if (ContendedTimes::matter(task.cluster)) options.with_contention = std::ref(contended);
    const policies::SearchResult result = search_with_progress(task, options, places);
    if (result.interrupted || result.plans.empty()) return false;
    const policies::PlannedLayout& best = result.plans.front();
    const std::string chosen = scenarios::describe(scenario.strategy.wildcards);
    scenario.strategy = policies::resolved_strategy(task, best.plan);
    scenario.job.micro_batch = best.point.micro_batch;
    complain("auto (" + chosen + ") is " + scenarios::describe(best.plan.layout) +
             (best.point.micro_batch != task.job.micro_batch ? ", micro-batch " + std::to_string(best.point.micro_batch)
                                                             : std::string()) +
             ": the best of " + scenarios::count_text(static_cast<double>(result.legal)) + " layouts");
    return true;
}

std::string options_for(const scenarios::Scenario& scenario, const scenarios::Strategy& strategy, int micro_batch) {
    if (strategy.placement.size() > kLongestList || strategy.micro_batches_per_replica.size() > kLongestList) return "";
    const scenarios::Layout &from = scenario.strategy.layout, &to = strategy.layout;
    const scenarios::Wildcards& open = scenario.strategy.wildcards;
    std::string text;
    const auto set = [&](bool differs, const std::string& key, const auto& value) {
        if (differs) text += (text.empty() ? "" : " ") + std::string("--set ") + key + "=" + value;
    };
    const auto number = [&](bool is_open, int before, int after, const std::string& key) {
        set(is_open || before != after, key, std::to_string(after));
    };
    const auto word = [&](bool is_open, auto before, auto after, const std::string& key) {
        set(is_open || before != after, key, std::string(scenarios::word_of(after)));
    };
    const auto list = [&](const std::vector<int>& before, const std::vector<int>& after, const std::string& key,
                          const char* otherwise) {
        set(before != after, key, after.empty() ? otherwise : list_text(after));
    };
    number(open.tensor, from.tensor, to.tensor, "strategy.tensor");
    number(open.pipeline, from.pipeline, to.pipeline, "strategy.pipeline");
    number(open.data, from.data, to.data, "strategy.data");
    number(open.context, from.context, to.context, "strategy.context");
    word(open.schedule, from.schedule, to.schedule, "strategy.schedule");
    number(open.virtual_pipeline, from.virtual_pipeline, to.virtual_pipeline, "strategy.virtual_pipeline");
    number(false, from.zero_bubble_memory, to.zero_bubble_memory, "strategy.zero_bubble_memory");
    word(open.recompute, from.recompute, to.recompute, "strategy.recompute");
    number(false, scenario.strategy.idle_gpus, strategy.idle_gpus, "strategy.idle_gpus");
    // Left open, a micro-batch is found again, since everything else is then given.
    if (!open.micro_batch) number(false, scenario.job.micro_batch, micro_batch, "job.micro_batch");
    list(scenario.strategy.layers_per_stage, strategy.layers_per_stage, "strategy.layers_per_stage", "even");
    list(scenario.strategy.micro_batches_per_replica, strategy.micro_batches_per_replica,
         "strategy.micro_batches_per_replica", "even");
    list(scenario.strategy.placement, strategy.placement, "strategy.placement", "in_order");
    return text;
}

}  // namespace headway::cli
