#include "policies/planning/layout_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "scenarios/language/plan_check.h"
#include "tests/policies/planning/planning_tasks.h"

namespace headway::tests {
namespace {

using policies::GpuGroups;
using policies::GpuOrder;
using policies::LayoutPoint;
using policies::PlanningTask;
using scenarios::Schedule;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(LayoutSpace, HasOnlyLegalPlansAndEachOnce) {
    const PlanningTask task = small_planning_task(2);
    const std::vector<LayoutPoint> points = policies::layout_points(task, false);
    EXPECT_GT(points.size(), 200u);
    for (std::size_t i = 0; i < points.size(); ++i) {
        const LayoutPoint& point = points[i];
        const GpuGroups groups(task.cluster, policies::usable_gpus(task), point.layout.tensor);
        for (const GpuOrder order : {GpuOrder::kStagesTogether, GpuOrder::kReplicasTogether}) {
            const scenarios::Plan plan = policies::even_plan(task, point, groups, order);
            EXPECT_NO_THROW(scenarios::check_plan(policies::job_of(task, point), task.cluster, plan));
        }
        EXPECT_EQ(task.job.model.heads % point.layout.tensor, 0);
        EXPECT_EQ(std::count(points.begin(), points.end(), point), 1);
    }
}

TEST(LayoutSpace, WithoutWildcardsIsTheStrategyItself) {
    PlanningTask task = small_planning_task(2);
    task.strategy.wildcards = {};
    task.strategy.layout.tensor = 4;
    task.strategy.layout.pipeline = 2;
    task.strategy.layout.data = 2;
    const std::vector<LayoutPoint> points = policies::layout_points(task, false);
    ASSERT_EQ(points.size(), 1u);
    EXPECT_EQ(points.front().layout, task.strategy.layout);
    EXPECT_EQ(points.front().micro_batch, task.job.micro_batch);
}

TEST(LayoutSpace, OpensOnlyWhatIsAWildcard) {
    PlanningTask task = small_planning_task(2);
    task.strategy.wildcards = {};
    task.strategy.wildcards.pipeline = true;
    task.strategy.wildcards.data = true;
    task.strategy.layout.tensor = 4;
    task.strategy.layout.recompute = scenarios::Recompute::kFull;
    std::set<int> pipelines;
    for (const LayoutPoint& point : policies::layout_points(task, false)) {
        pipelines.insert(point.layout.pipeline);
        EXPECT_EQ(point.layout.tensor, 4);
        EXPECT_EQ(point.layout.schedule, Schedule::kOneForwardOneBackward);
        EXPECT_EQ(point.layout.recompute, scenarios::Recompute::kFull);
    }
    EXPECT_THAT(pipelines, ElementsAre(1, 2, 3, 4));
}

TEST(LayoutSpace, MicroBatchesAreDivisorsOfTheGlobalBatchWhereTheyAreOpen) {
    PlanningTask task = small_planning_task(2);
    task.strategy.wildcards.micro_batch = true;
    std::set<int> sizes;
    for (const LayoutPoint& point : policies::layout_points(task, false)) sizes.insert(point.micro_batch);
    EXPECT_THAT(sizes, ElementsAre(1, 2, 4, 8, 16, 32));
}

TEST(LayoutSpace, TensorGroupsStayInsideNodesUnlessAskedFor) {
    const PlanningTask task = small_planning_task(2);
    for (const LayoutPoint& point : policies::layout_points(task, false)) EXPECT_LE(point.layout.tensor, 8);
    for (const LayoutPoint& point : policies::layout_points(task, true)) EXPECT_EQ(point.layout.tensor, 16);
}

TEST(LayoutSpace, GroupsLeaveOutGpusThatFillNone) {
    const PlanningTask task = small_planning_task(2);
    std::vector<int> usable = policies::usable_gpus(task);
    usable.erase(usable.begin() + 3);  // GPU 3 of node 0
    const GpuGroups pairs(task.cluster, usable, 2), whole(task.cluster, usable, 8);
    EXPECT_EQ(pairs.groups(), 7);
    EXPECT_EQ(pairs.gpu(1, 0), 2);
    EXPECT_EQ(pairs.gpu(1, 1), 4);
    EXPECT_EQ(whole.groups(), 1);
    EXPECT_EQ(whole.gpu(0, 0), 8);
}

TEST(LayoutSpace, LostGpusAreNeverUsed) {
    PlanningTask task = small_planning_task(2);
    task.unavailable_gpus = {8, 9, 10, 11, 12, 13, 14, 15};
    const std::vector<LayoutPoint> points = policies::layout_points(task, false);
    ASSERT_THAT(points, Not(IsEmpty()));
    for (const LayoutPoint& point : points) EXPECT_LE(point.layout.world_size(), 8);
}

TEST(LayoutSpace, SharesAreAsEvenAsTheScheduleAllows) {
    EXPECT_THAT(policies::even_shares(10, 1, 4), ElementsAre(3, 3, 2, 2));
    EXPECT_THAT(policies::even_shares(24, 4, 4), ElementsAre(8, 8, 4, 4));
    EXPECT_THAT(policies::even_shares(10, 4, 2), IsEmpty());
    EXPECT_THAT(policies::even_shares(3, 1, 4), IsEmpty());
}

TEST(LayoutSpace, SaysWhyItIsEmpty) {
    PlanningTask task = small_planning_task(2);
    task.strategy.wildcards.data = false;
    task.strategy.layout.data = 64;
    EXPECT_THAT(policies::layout_points(task, false), IsEmpty());
    EXPECT_THAT(policies::why_no_layout(task), HasSubstr("cannot be shared by 64 replicas"));
    task.strategy.wildcards.tensor = false;
    task.strategy.layout.tensor = 7;
    EXPECT_THAT(policies::why_no_layout(task), HasSubstr("tensor 7 divides"));
}

}  // namespace
}  // namespace headway::tests
