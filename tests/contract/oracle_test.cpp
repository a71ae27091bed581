#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/rules/plan_progress.h"
#include "policies/rules/schedule_search.h"
#include "scenarios/transfer/switch_costs.h"
#include "sim/simulated_cluster.h"
#include "tests/contract/contract_scenario.h"

/// The oracle's search, on a simulated job of two replicas whose first is slowed for a while.
namespace headway::tests {
namespace {

using policies::Duration;
using policies::PlanProgress;
using policies::Schedule;
using policies::ScheduleProblem;

constexpr std::uint64_t kSeed = 1;

std::string slow_gpu(double start_s, double duration_s) {
    return "[{start: " + std::to_string(start_s) + " s, duration: " + std::to_string(duration_s) +
           " s, speed_factor: {gpu: 2, factor: 0.5}}]";
}

scenarios::Plan shifted(scenarios::Plan plan, int micro_batches) {
    plan.micro_batches_of_replica[0] -= micro_batches;
    plan.micro_batches_of_replica[1] += micro_batches;
    return plan;
}

ScheduleProblem problem_of(policies::TrainingCluster& world, const std::vector<scenarios::Plan>& plans, Duration end) {
    ScheduleProblem problem;
    problem.plans = plans;
    problem.step = world.facts().healthy_iteration * 5;
    problem.end = end;
    for (const scenarios::Plan& plan : plans) {
        problem.progress.push_back(PlanProgress::measure(world, kSeed, plan, 5, end).value());
    }
    return problem;
}

std::unique_ptr<sim::SimulatedCluster> world_of(const scenarios::Scenario& scenario) {
    return std::make_unique<sim::SimulatedCluster>(scenario, nullptr, sim::SimulationOptions::quick());
}

TEST(PlanProgress, CountsUsefulIterationsThroughALoss) {
    const auto world = world_of(contract_scenario_with_loss());
    const scenarios::Plan plan = world->facts().initial_plan;
    const auto progress = PlanProgress::measure(*world, kSeed, plan, 5, Duration::seconds(60));
    ASSERT_TRUE(progress);
    const auto* outage = progress->outage_at(Duration::seconds(10));
    ASSERT_NE(outage, nullptr);
    EXPECT_LE(outage->broken_off, Duration::seconds(2.5));
    EXPECT_GT(outage->resumed, Duration::seconds(30));
    EXPECT_EQ(progress->outage_at(outage->resumed), nullptr);
    EXPECT_EQ(progress->outage_between(Duration(), Duration::seconds(3)), outage);
    EXPECT_EQ(progress->iterations_at(Duration::seconds(10)), progress->iterations_at(Duration::seconds(20)));
    EXPECT_GT(progress->iterations_at(outage->resumed + Duration::seconds(5)),
              progress->iterations_at(outage->resumed) + 5.0);
}

TEST(ScheduleSearch, LeavesAndComesBackWhenTheDisturbancePays) {
    const auto world = world_of(contract_scenario(slow_gpu(20, 60), "{time: 100 s}"));
    const policies::ClusterFacts& facts = world->facts();
    const scenarios::Plan other = shifted(facts.initial_plan, 3);
    const ScheduleProblem problem = problem_of(*world, {facts.initial_plan, other}, Duration::seconds(100));
    const Schedule schedule = policies::best_schedule(facts, problem);
    ASSERT_EQ(schedule.moves.size(), 2u);
    EXPECT_EQ(schedule.moves[0].plan, other);
    EXPECT_NEAR(schedule.moves[0].at.s(), 20.0, 2.0 * problem.step.s());
    EXPECT_EQ(schedule.moves[1].plan, facts.initial_plan);
    EXPECT_NEAR(schedule.moves[1].at.s(), 80.0, 2.0 * problem.step.s());
    EXPECT_TRUE(schedule.losses.empty());
}

TEST(ScheduleSearch, StaysWhereTheDisturbanceIsTooShortForThePauses) {
    const auto world = world_of(contract_scenario(slow_gpu(20, 60), "{time: 100 s}"));
    policies::ClusterFacts facts = world->facts();
    facts.adapt.live = false;  // each way is a save and a restart, some seconds each
    const scenarios::Plan other = shifted(facts.initial_plan, 3);
    const Duration pause = scenarios::switch_costs(facts.job, facts.cluster, facts.initial_plan, other).restart_pause;
    const auto moves_when_it_lasts = [&](Duration lasts) {
        const auto shorter = world_of(contract_scenario(slow_gpu(20, lasts.s()), "{time: 100 s}"));
        return policies::best_schedule(facts, problem_of(*shorter, {facts.initial_plan, other}, Duration::seconds(100)))
            .moves.size();
    };
    ASSERT_GT(pause, Duration::seconds(1));
    EXPECT_EQ(moves_when_it_lasts(pause), 0u) << "it is over before the job goes on";
    EXPECT_GT(moves_when_it_lasts(Duration::seconds(75)), 0u);
}

TEST(ScheduleSearch, TakesTheJobAwayBeforeAPartIsLost) {
    const auto world = world_of(contract_scenario_with_loss());
    const policies::ClusterFacts& facts = world->facts();
    scenarios::Plan without_node_1 = facts.initial_plan;  // one replica of two stages, on node 0
    without_node_1.layout.data = 1;
    without_node_1.gpu_of_rank = {0, 1};
    without_node_1.layers_of_cell.resize(2);
    without_node_1.micro_batches_of_replica = {16};
    const ScheduleProblem problem = problem_of(*world, {facts.initial_plan, without_node_1}, Duration::seconds(60));
    const Schedule schedule = policies::best_schedule(facts, problem);
    ASSERT_FALSE(schedule.moves.empty() && schedule.losses.empty());
    const bool restarted = !schedule.losses.empty() && schedule.losses[0].restart == without_node_1;
    const bool moved_before = !schedule.moves.empty() && schedule.moves[0].plan == without_node_1;
    EXPECT_TRUE(restarted || moved_before) << "half the speed for 30 s is better than none";
}

}  // namespace
}  // namespace headway::tests
