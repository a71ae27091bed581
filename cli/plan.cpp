#include <algorithm>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "cli/catalogue_choice.h"
#include "cli/cluster_at.h"
#include "cli/commands.h"
#include "cli/contended_times.h"
#include "cli/exit_codes.h"
#include "cli/interrupt.h"
#include "cli/scenario_check.h"
#include "cli/standard_output.h"
#include "cli/wildcards.h"
#include "scenarios/costs/memory.h"
#include "scenarios/language/config_error.h"
#include "scenarios/language/value_text.h"
#include "scenarios/record/plan_report.h"

namespace headway::cli {

namespace {

scenarios::PlanRow row_of(const policies::PlannedLayout& layout) {
    scenarios::PlanRow row;
    row.plan = layout.plan;
    row.micro_batch = layout.point.micro_batch;
    row.iteration_ns = layout.iteration.ns();
    row.tokens_per_s = layout.tokens_per_second;
    row.mfu = layout.mfu;
    row.memory_bytes = layout.memory.count();
    row.gpu_memory_bytes = layout.gpu_memory.count();
    row.fullest_stage = layout.fullest_stage;
    row.why = layout.why;
    row.compute_ns = layout.shares.compute.ns();
    row.bubble_ns = layout.shares.bubble.ns();
    row.tensor_ns = layout.shares.tensor.ns();
    row.pipeline_ns = layout.shares.pipeline.ns();
    row.data_ns = layout.shares.data.ns();
    row.contention_ns = layout.contention.ns();
    return row;
}

/// The plan that the scenario asks for itself, under the same conditions.
void add_own(const scenarios::Scenario& scenario, const policies::PlanningTask& task,
             const policies::SearchOptions& options, scenarios::PlanReport& report) {
    if (scenario.strategy.wildcards.any()) return;
    try {
        const scenarios::Plan plan = scenarios::initial_plan(scenario.strategy, scenario.job, scenario.cluster);
        for (const int gpu : plan.gpu_of_rank) {
            if (!std::binary_search(task.unavailable_gpus.begin(), task.unavailable_gpus.end(), gpu)) continue;
            report.own_problem = "it uses GPU " + std::to_string(gpu) + ", which is lost";
            return;
        }
        if (!scenarios::memory_shortages(scenario.job, scenario.cluster, plan).empty()) {
            report.own_problem = "it does not fit in memory (headway check says where)";
            return;
        }
        report.own = row_of(policies::evaluate_layout(task, {plan.layout, scenario.job.micro_batch}, plan, options));
    } catch (const std::invalid_argument& error) {
        report.own_problem = error.what();
    }
}

}  // namespace

int plan(const PlanArguments& arguments) {
    scenarios::KeyPlaces places;
    const scenarios::Scenario scenario =
        scenarios::read_scenario(arguments.scenario, chosen_catalogue(arguments), arguments.overrides, &places);
    policies::PlanningTask task;
    task.job = scenario.job;
    task.cluster = scenario.cluster;
    task.strategy = scenario.strategy.wildcards.any() ? scenario.strategy : policies::opened(scenario.strategy);
    task.layers_apart = true;
    scenarios::PlanReport report;
    report.scenario = scenario.name;
    report.model = scenario.job.model.name;
    report.state = "healthy";
    std::optional<scenarios::Duration> at;
    if (arguments.at) {
        at = scenarios::parse_quantity(*arguments.at, scenarios::Duration());
        if (!at || *at < scenarios::Duration())
            throw scenarios::ConfigError("--at " + *arguments.at + ": is not allowed (" +
                                         scenarios::quantity_form(scenarios::Duration()) + ")");
        ClusterAt cluster = cluster_at(scenario, *at);
        task.conditions = std::move(cluster.conditions);
        task.unavailable_gpus = std::move(cluster.unavailable_gpus);
        report.state = "at " + *arguments.at + ": " + cluster.what;
    }
    report.gpus = static_cast<int>(policies::usable_gpus(task).size());

    ContendedTimes contended(scenario, task, at);
    policies::SearchOptions options;
    options.plans = arguments.top;
    if (ContendedTimes::matter(task.cluster)) options.with_contention = std::ref(contended);
    const policies::SearchResult result = search_with_progress(task, options, places);
    for (const policies::PlannedLayout& layout : result.plans) report.plans.push_back(row_of(layout));
    report.layouts = result.legal;
    report.costed = result.costed;
    report.evaluated = result.evaluated;
    report.simulated = result.contended;
    report.complete = !result.interrupted;
    add_own(scenario, task, options, report);
    // Times were measured under the scenario's own plan: with another they would mean something else.
    if (!result.plans.empty() && result.plans.front().plan.same_layers_everywhere() && !scenario.job.measured) {
        const policies::PlannedLayout& best = result.plans.front();
        report.run_best = options_for(scenario, policies::resolved_strategy(task, best.plan), best.point.micro_batch);
    }
    if (result.interrupted) complain("interrupted: these are the plans known by then to be the best");
    print(arguments.json ? scenarios::plans_json(report) : scenarios::plans_text(report));
    return result.interrupted ? kInterrupted : kSucceeded;
}

}  // namespace headway::cli
