#include "policies/planning/uneven_plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <numeric>

#include "policies/planning/layout_search.h"
#include "scenarios/timing/evaluator.h"
#include "scenarios/timing/replica_programs.h"
#include "tests/policies/planning/planning_tasks.h"

namespace headway::tests {
namespace {

using policies::GpuGroups;
using policies::LayoutPoint;
using policies::PlanningTask;
using scenarios::Duration;
using scenarios::Plan;

/// All ways to write `total` as an ordered sum of `parts` multiples of `unit`, each at least one of it.
void each_sum(int total, int parts, int unit, std::vector<int>& so_far,
              const std::function<void(const std::vector<int>&)>& visit) {
    if (parts == 0) {
        if (total == 0) visit(so_far);
        return;
    }
    for (int part = unit; part <= total - (parts - 1) * unit; part += unit) {
        so_far.push_back(part);
        each_sum(total - part, parts - 1, unit, so_far, visit);
        so_far.pop_back();
    }
}

/// The best of every plan of a layout: all placements of its tensor groups, all splits that all replicas share, all
/// shares.
Duration best_of_all(const PlanningTask& task, const LayoutPoint& point, std::int64_t& plans) {
    const scenarios::Layout& layout = point.layout;
    const scenarios::Job job = policies::job_of(task, point);
    const GpuGroups groups(task.cluster, policies::usable_gpus(task), layout.tensor);
    const auto programs = std::make_shared<scenarios::ReplicaPrograms>(layout);
    const int unit = layout.schedule == scenarios::Schedule::kInterleaved ? layout.pipeline : 1;
    Duration best = Duration::nanoseconds(std::numeric_limits<std::int64_t>::max());
    std::vector<int> order(static_cast<std::size_t>(groups.groups()));
    std::iota(order.begin(), order.end(), 0);
    std::vector<std::vector<int>> placed;
    do {
        Plan plan = policies::even_plan(task, point, groups, policies::GpuOrder::kStagesTogether, order);
        if (std::find(placed.begin(), placed.end(), plan.gpu_of_rank) != placed.end()) continue;
        placed.push_back(plan.gpu_of_rank);
        std::vector<int> split, shares;
        each_sum(task.job.model.layers, layout.virtual_stages(), 1, split, [&](const std::vector<int>& layers) {
            plan.layers_of_cell = scenarios::same_layers(layers, layout.data);
            const auto times = scenarios::step_times(scenarios::iteration_costs(job, task.cluster, plan), plan,
                                                     task.cluster, task.conditions);
            each_sum(job.global_batch / job.micro_batch, layout.data, unit, shares, [&](const std::vector<int>& m) {
                plan.micro_batches_of_replica = m;
                ++plans;
                best = std::min(best,
                                scenarios::Evaluator(plan, job.model.tied_embedding, programs).iteration_time(times));
            });
        });
    } while (std::next_permutation(order.begin(), order.end()));
    return best;
}

/// Two nodes of two GPUs, a deep and narrow model.
PlanningTask four_gpus() {
    PlanningTask task;
    task.job = scenarios::job_of(scenarios::gpt(6, 2048, 16, 1024, 32000), 1, 12);
    task.cluster = scenarios::dgx_a100(2);
    task.cluster.node_groups.front().node.gpus = task.cluster.node_groups.front().node.nics = 2;
    task.strategy = policies::opened({});
    // One of each kind is enough here: what differs between GPUs is the matter.
    task.strategy.wildcards.recompute = false;
    return task;
}

void expect_near_the_best_of_all(const char* name, const PlanningTask& task) {
    const policies::SearchResult found =
        policies::search_layouts(task, {.plans = 1, .with_contention = {}, .go_on = {}});
    ASSERT_FALSE(found.plans.empty());
    Duration best = Duration::nanoseconds(std::numeric_limits<std::int64_t>::max());
    std::int64_t plans = 0;
    std::string layout;
    for (const LayoutPoint& point : policies::layout_points(task, false)) {
        const Duration time = best_of_all(task, point, plans);
        if (time >= best) continue;
        best = time;
        layout = scenarios::describe(point.layout);
    }
    const Duration proposed = found.plans.front().iteration;
    std::printf("%s: proposed %s, %.3f ms; best of %lld plans %s, %.3f ms (%.2f %%)\n", name,
                scenarios::describe(found.plans.front().plan.layout).c_str(), proposed.ms(),
                static_cast<long long>(plans), layout.c_str(), best.ms(), (proposed / best - 1.0) * 100.0);
    EXPECT_GT(plans, 1000);
    EXPECT_LE(proposed.s(), 1.03 * best.s());
}

TEST(UnevenPlans, OfTwoTypesAreNearTheBestOfAll) {
    PlanningTask task = four_gpus();
    scenarios::NodeGroup other = task.cluster.node_groups.front();
    task.cluster.node_groups.front().count = other.count = 1;
    other.node.gpu = scenarios::read_gpu(scenarios::shipped_catalogue(), "H800-SXM5-80GB");
    task.cluster.node_groups.push_back(other);
    expect_near_the_best_of_all("two types", task);
}

TEST(UnevenPlans, AroundASlowGpuAreNearTheBestOfAll) {
    for (const double compute : {0.8, 0.5, 0.3}) {
        PlanningTask task = four_gpus();
        task.conditions.gpus.assign(4, {});
        task.conditions.gpus[2].compute = compute;
        expect_near_the_best_of_all(("GPU 2 at " + std::to_string(compute)).c_str(), task);
    }
}

TEST(UnevenPlans, BehindSlowLinksAreNearTheBestOfAll) {
    PlanningTask task = four_gpus();
    task.conditions.node_network = {1.0, 0.1};
    expect_near_the_best_of_all("node 1 behind a slow link", task);
}

}  // namespace
}  // namespace headway::tests
