#include "policies/planning/layout_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "policies/planning/iteration_bound.h"
#include "policies/planning/point_bounds.h"
#include "policies/planning/uneven_plans.h"
#include "scenarios/costs/memory.h"
#include "scenarios/language/plan_check.h"
#include "scenarios/timing/evaluator.h"
#include "tests/policies/planning/planning_tasks.h"

namespace headway::tests {
namespace {

using policies::GpuGroups;
using policies::GpuOrder;
using policies::LayoutPoint;
using policies::PlannedLayout;
using policies::PlanningTask;
using policies::SearchResult;
using scenarios::Duration;
using scenarios::Plan;
using ::testing::HasSubstr;

Plan plan_in_order(const PlanningTask& task, const LayoutPoint& point) {
    const GpuGroups groups(task.cluster, policies::usable_gpus(task), point.layout.tensor);
    return policies::even_plan(task, point, groups, GpuOrder::kStagesTogether);
}

Duration evaluated(const PlanningTask& task, const LayoutPoint& point, const Plan& plan) {
    const scenarios::Job job = policies::job_of(task, point);
    const auto costs = scenarios::iteration_costs(job, task.cluster, plan);
    return scenarios::Evaluator(plan, job.model.tied_embedding)
        .iteration_time(scenarios::step_times(costs, plan, task.cluster));
}

/// Tasks that differ in everything a bound depends on.
std::vector<PlanningTask> various_tasks() {
    std::vector<PlanningTask> tasks(5, small_planning_task(2));
    tasks[1].strategy.layout.overlap_pipeline_comm = true;
    tasks[1].strategy.layout.overlap_grad_reduce = true;
    tasks[2].strategy.layout.distributed_optimizer = true;
    tasks[2].strategy.layout.overlap_param_gather = true;
    tasks[2].strategy.layout.sequence_parallel = true;
    tasks[2].job.global_batch = 30;
    tasks[3].job = scenarios::job_of(scenarios::gpt(6, 768, 12, 512), 2, 48, "nemo-2024");
    tasks[3].strategy.layout.distributed_optimizer = true;
    tasks[3].job.model.tied_embedding = false;
    tasks[4].unavailable_gpus = {5};
    tasks[4].job.global_batch = 24;
    return tasks;
}

TEST(LayoutSearch, BoundsAreNeverAboveTheEvaluation) {
    for (const PlanningTask& task : various_tasks()) {
        policies::PointBounds bounds(task);
        EXPECT_TRUE(bounds.uniform());
        for (const LayoutPoint& point : policies::layout_points(task, false)) {
            const Plan plan = plan_in_order(task, point);
            const auto times = scenarios::step_times(
                scenarios::iteration_costs(policies::job_of(task, point), task.cluster, plan), plan, task.cluster);
            const Duration exact = evaluated(task, point, plan);
            const Duration tight = policies::iteration_lower_bound(plan.layout, task.job.model.tied_embedding,
                                                                   plan.micro_batches_of_replica, times);
            EXPECT_LE(tight, exact) << scenarios::describe(point.layout);
            EXPECT_LE(bounds(point), exact) << scenarios::describe(point.layout);
            EXPECT_GT(bounds(point).s(), 0.3 * exact.s()) << scenarios::describe(point.layout);
        }
    }
}

/// Two types of GPUs, and one that is slow.
std::vector<PlanningTask> uneven_tasks() {
    std::vector<PlanningTask> tasks(3, small_planning_task(2));
    scenarios::NodeGroup other = tasks[0].cluster.node_groups.front();
    other.count = tasks[0].cluster.node_groups.front().count = 1;
    other.node.gpu = scenarios::read_gpu(scenarios::shipped_catalogue(), "H800-SXM5-80GB");
    tasks[0].cluster.node_groups.push_back(other);
    tasks[0].job.model = scenarios::gpt(8, 1024, 16, 1024);
    tasks[1].conditions.gpus.assign(16, {});
    tasks[1].conditions.gpus[5] = {.compute = 0.4};
    tasks[2] = tasks[1];
    tasks[2].conditions.gpus[11] = {.compute = 0.8, .memory = 0.9};
    tasks[2].strategy.layout.sequence_parallel = true;
    for (PlanningTask& task : tasks) task.layers_apart = true;
    return tasks;
}

TEST(LayoutSearch, BoundsHoldForEveryPlanOfUnevenGpus) {
    for (const PlanningTask& task : uneven_tasks()) {
        policies::PointBounds bounds(task);
        policies::UnevenPlans uneven(task, bounds);
        const std::vector<scenarios::Bytes> memory = scenarios::memory_of_gpus(task.cluster);
        EXPECT_FALSE(bounds.uniform());
        for (const LayoutPoint& point : policies::layout_points(task, false)) {
            const scenarios::Job job = policies::job_of(task, point);
            const GpuGroups groups(task.cluster, policies::usable_gpus(task), point.layout.tensor);
            policies::PlanMemory table(job, point.layout, memory);
            const std::vector<Plan> plans = uneven.of(point, groups, table, 100);
            EXPECT_FALSE(plans.empty());
            for (const Plan& plan : plans) {
                scenarios::check_plan(job, task.cluster, plan);
                const auto costs = scenarios::iteration_costs(job, task.cluster, plan);
                const auto times = scenarios::step_times(costs, plan, task.cluster, task.conditions);
                const Duration exact = scenarios::Evaluator(plan, job.model.tied_embedding).iteration_time(times);
                EXPECT_LE(policies::iteration_lower_bound(plan.layout, task.job.model.tied_embedding,
                                                          plan.micro_batches_of_replica, times),
                          exact)
                    << scenarios::describe(plan.layout);
                EXPECT_LE(bounds(point), exact) << scenarios::describe(plan.layout);
            }
        }
    }
}

TEST(LayoutSearch, UnevenGpusGetUnevenWork) {
    for (const PlanningTask& task : uneven_tasks()) {
        const SearchResult result = policies::search_layouts(task);
        ASSERT_FALSE(result.plans.empty());
        // Better than any even plan in the order of the nodes.
        for (const LayoutPoint& point : policies::layout_points(task, false)) {
            const Plan plan = plan_in_order(task, point);
            if (!scenarios::memory_shortages(policies::job_of(task, point), task.cluster, plan).empty()) continue;
            EXPECT_LE(result.plans.front().iteration, policies::evaluate_layout(task, point, plan).iteration);
        }
    }
}

TEST(LayoutSearch, BoundIsExactForEqualStagesWithoutMessages) {
    scenarios::Layout layout = scenarios::layout_of(1, 4, 1);
    scenarios::StepTimes times;
    times.forward.assign(4, 1000);
    times.backward.assign(4, 2000);
    const std::vector<int> micro_batches = {8};
    EXPECT_EQ(policies::iteration_lower_bound(layout, false, micro_batches, times).ns(), (8 + 3) * 3000);
    layout = scenarios::layout_of(1, 4, 1, 2);
    times.forward.assign(8, 500);
    times.backward.assign(8, 1000);
    EXPECT_EQ(policies::iteration_lower_bound(layout, false, micro_batches, times).ns(), 8 * 3000 + 3 * 1500);
}

TEST(LayoutSearch, FindsWhatEvaluatingEverythingFinds) {
    for (const PlanningTask& task : various_tasks()) {
        std::vector<Duration> in_order, any_order;  // of each layout
        for (const LayoutPoint& point : policies::layout_points(task, false)) {
            const Plan plan = plan_in_order(task, point);
            if (!scenarios::memory_shortages(policies::job_of(task, point), task.cluster, plan).empty()) continue;
            in_order.push_back(evaluated(task, point, plan));
            any_order.push_back(in_order.back());
            const GpuGroups groups(task.cluster, policies::usable_gpus(task), point.layout.tensor);
            for (const GpuOrder order : {GpuOrder::kReplicasTogether, GpuOrder::kEndsTogether})
                any_order.back() =
                    std::min(any_order.back(), evaluated(task, point, policies::even_plan(task, point, groups, order)));
        }
        std::sort(in_order.begin(), in_order.end());
        std::sort(any_order.begin(), any_order.end());
        policies::SearchOptions options;
        options.plans = 7;
        const SearchResult result = policies::search_layouts(task, options);
        ASSERT_EQ(result.plans.size(), 7u);
        for (std::size_t i = 0; i < 7; ++i) {
            EXPECT_LE(result.plans[i].iteration, in_order[i]) << i;
            EXPECT_GE(result.plans[i].iteration, any_order[i]) << i;
            EXPECT_LE(result.plans[i].iteration.s(), 1.011 * any_order[i].s())
                << i;  // other orders gain 1 % or are left
        }
        EXPECT_LT(result.evaluated, static_cast<std::int64_t>(in_order.size()));
    }
}

TEST(LayoutSearch, PlansFitInMemoryAndAddUp) {
    PlanningTask task = small_planning_task(2);
    task.cluster.node_groups.front().node.gpu.memory = scenarios::Bytes::gib(2.5);
    const SearchResult result = policies::search_layouts(task);
    ASSERT_FALSE(result.plans.empty());
    for (const PlannedLayout& planned : result.plans) {
        EXPECT_TRUE(scenarios::memory_shortages(task.job, task.cluster, planned.plan).empty());
        EXPECT_LE(planned.memory, planned.gpu_memory);
        const policies::IterationShares& shares = planned.shares;
        EXPECT_EQ(shares.compute + shares.bubble + shares.tensor + shares.pipeline + shares.data, planned.iteration);
        EXPECT_FALSE(planned.why.empty());
    }
}

TEST(LayoutSearch, IsDeterministic) {
    const PlanningTask task = small_planning_task(3);
    const SearchResult first = policies::search_layouts(task), second = policies::search_layouts(task);
    ASSERT_EQ(first.plans.size(), second.plans.size());
    EXPECT_EQ(first.evaluated, second.evaluated);
    for (std::size_t i = 0; i < first.plans.size(); ++i) {
        EXPECT_EQ(first.plans[i].plan, second.plans[i].plan);
        EXPECT_EQ(first.plans[i].why, second.plans[i].why);
    }
}

TEST(LayoutSearch, AResolvedStrategyMeansThePlanAgain) {
    for (const PlanningTask& task : various_tasks()) {
        for (const PlannedLayout& planned : policies::search_layouts(task).plans) {
            const scenarios::Strategy strategy = policies::resolved_strategy(task, planned.plan);
            EXPECT_FALSE(strategy.wildcards.any());
            EXPECT_EQ(scenarios::initial_plan(strategy, policies::job_of(task, planned.point), task.cluster),
                      planned.plan);
        }
    }
}

TEST(LayoutSearch, NamesTheClosestPlanWhenNothingFits) {
    PlanningTask task = small_planning_task(1);
    task.cluster.node_groups.front().node.gpu.memory = scenarios::Bytes::gib(1.51);
    const SearchResult result = policies::search_layouts(task);
    EXPECT_TRUE(result.plans.empty());
    ASSERT_TRUE(result.closest);
    EXPECT_EQ(result.closest->available, scenarios::Bytes::gib(1.51));
    // No legal layout needs less.
    for (const bool across : {false, true}) {
        for (const LayoutPoint& point : policies::layout_points(task, across)) {
            scenarios::Bytes most;
            for (const auto& stage : scenarios::stage_memory(task.job, plan_in_order(task, point)))
                most = std::max(most, stage.total());
            EXPECT_GE(most, result.closest->needed);
        }
    }
}

TEST(LayoutSearch, TensorGroupsCrossNodesOnlyWhenNothingElseFits) {
    PlanningTask task = small_planning_task(2);
    task.job.model = scenarios::gpt(1, 4096, 16, 512);
    task.job.global_batch = 1;
    EXPECT_FALSE(policies::search_layouts(task).tensor_across_nodes);
    task.cluster.node_groups.front().node.gpu.memory = scenarios::Bytes::gib(2.35);
    const SearchResult result = policies::search_layouts(task);
    ASSERT_FALSE(result.plans.empty());
    EXPECT_TRUE(result.tensor_across_nodes);
    EXPECT_EQ(result.plans.front().plan.layout.tensor, 16);
}

TEST(LayoutSearch, RefusesAGlobalBatchThatNothingCanShare) {
    PlanningTask task = small_planning_task(2);
    task.strategy.wildcards.data = false;
    task.strategy.layout.data = 64;
    try {
        policies::search_layouts(task);
        FAIL();
    } catch (const std::invalid_argument& error) {
        EXPECT_THAT(error.what(), HasSubstr("the global batch of 32"));
    }
}

TEST(LayoutSearch, EndsWhenAskedTo) {
    policies::SearchOptions options;
    options.go_on = [](const SearchResult&) { return false; };
    const SearchResult result = policies::search_layouts(small_planning_task(2), options);
    EXPECT_TRUE(result.interrupted);
    EXPECT_TRUE(result.plans.empty());
}

}  // namespace
}  // namespace headway::tests
