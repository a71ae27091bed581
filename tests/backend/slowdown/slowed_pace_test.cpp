#include "backend/slowdown/slowed_pace.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/backend/cluster/small_deployment.h"

namespace headway::backend {
namespace {

using scenarios::Duration;
using scenarios::Instruction;
using scenarios::Op;

struct PacedRank {
    explicit PacedRank(std::optional<double> factor, const std::string& disturbances = "[]")
        : scenario(small_deployment("{data: 2, pipeline: 2}", "disturbances: " + disturbances + "\n")),
          plan(initial_plan_of(scenario)),
          physical(scenario),
          costs(scenarios::iteration_costs(scenario.job, scenario.cluster, plan), scenario.cluster, plan, 1),
          pace(scenario.job, scenario.cluster, plan, 1, factor, physical, clock) {
        clock.start();
    }
    /// Lets `pace` finish an operation that took `spent`; returns for how long it let time pass.
    Duration pass(Op op, Duration spent, int micro_batch = 0) {
        const auto begin = std::chrono::steady_clock::now();
        pace.finish({op, 0, false, micro_batch}, spent);
        return Duration::nanoseconds((std::chrono::steady_clock::now() - begin).count());
    }

    scenarios::Scenario scenario;
    scenarios::Plan plan;
    PhysicalDisturbances physical;
    EpisodeClock clock;
    OperationCosts costs;
    SlowedPace pace;
};

TEST(OperationCosts, AreThoseOfTheCostModelWithoutCommunication) {
    const PacedRank rank(1.0);
    const scenarios::IterationCosts costs =
        scenarios::iteration_costs(rank.scenario.job, rank.scenario.cluster, rank.plan);
    const scenarios::Work forward = rank.costs.of({Op::kForward, 0, false, 0});
    EXPECT_EQ(forward.communication, Duration());
    EXPECT_EQ(forward.compute, costs.virtual_stages[0][0].forward.compute);
    EXPECT_EQ(rank.costs.of({Op::kSendActivation, 0, false, 0}).total(), Duration());
    const Duration each = forward.total() + rank.costs.of({Op::kBackward, 0, false, 0}).total();
    EXPECT_EQ(rank.costs.compute(), each * 8 + rank.costs.of({Op::kOptimizerStep, 0, false, 0}).total());
}

TEST(SlowedPace, PadsOperationsToTheDeclaredDuration) {
    PacedRank rank(10.0);
    const Duration declared = rank.costs.of({Op::kForward, 0, false, 0}).total().scaled(10.0);
    const Duration spent = declared.scaled(0.25);
    Duration sum;
    for (int i = 0; i < 10; ++i) sum += rank.pass(Op::kForward, spent);
    // Each sleep may end late, and the next one makes up for it: only the last is not made up for.
    EXPECT_GE(sum, (declared - spent) * 10 - declared);
    EXPECT_EQ(rank.pace.take_overrun().late, 0);
    EXPECT_EQ(rank.pace.take_overrun().operations, 0) << "taken";
}

TEST(SlowedPace, CountsOperationsThatTookLongerThanDeclared) {
    PacedRank rank(1.0);
    rank.pass(Op::kForward, Duration::seconds(1));
    rank.pass(Op::kForward, Duration());
    const SlowedPace::Overrun overrun = rank.pace.take_overrun();
    EXPECT_EQ(overrun.operations, 2);
    EXPECT_EQ(overrun.late, 1);
    EXPECT_NEAR(overrun.time.s(), 1.0, 0.1);
}

TEST(SlowedPace, ADisturbedRankTakesLonger) {
    PacedRank healthy(20.0);
    PacedRank slow(20.0, "[{start: 0 s, speed_factor: {gpu: 1, factor: 0.25}}]");
    Duration of_healthy, of_slow;
    for (int i = 0; i < 5; ++i) {
        of_healthy += healthy.pass(Op::kBackward, Duration());
        of_slow += slow.pass(Op::kBackward, Duration());
    }
    EXPECT_GT(of_slow, of_healthy.scaled(1.5));
}

TEST(SlowedPace, WithoutADeclaredPaceOnlyDisturbancesTakeTime) {
    PacedRank healthy(std::nullopt);
    EXPECT_LT(healthy.pass(Op::kForward, Duration::milliseconds(20)), Duration::milliseconds(15));
    PacedRank slow(std::nullopt, "[{start: 0 s, co_tenant: {gpu: 1, compute_share: 0.5, memory_share: 0.1}}]");
    EXPECT_GE(slow.pass(Op::kForward, Duration::milliseconds(20)), Duration::milliseconds(20));
}

}  // namespace
}  // namespace headway::backend
