#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/contract/cluster_contract.h"

/// What every implementation of the seam promises of parts that are lost and come back.
namespace headway::tests {
namespace {

using policies::Duration;
using policies::Measurements;
using policies::Recovery;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class AvailabilityContract : public TrainingClusterContract {};

/// Node 1 is lost while the job runs on node 0 alone.
scenarios::Scenario scenario_with_idle_loss() {
    scenarios::Scenario scenario = contract_scenario("[{start: 1 s, node_loss: {node: 1}}]", "{time: 120 s}");
    scenario.strategy.layout.data = 1;
    scenario.strategy.placement = {0, 1};
    return scenario;
}

TEST_P(AvailabilityContract, RestartsAtOnceWithoutTheLostParts) {
    SKIP_WHERE_MISSING(true, false);
    const scenarios::Scenario scenario = contract_scenario_with_loss();
    const auto cluster = make(scenario);
    const scenarios::Plan half = plan_on_one_node(scenario);
    const Measurements lost = run_to_loss(*cluster);
    EXPECT_THAT(lost.unavailable_gpus, ElementsAre(2, 3));
    const Duration before = cluster->now();
    EXPECT_THROW(cluster->recover({Recovery::Kind::kRestart, cluster->facts().initial_plan}), std::invalid_argument)
        << "node 1 is not there";
    EXPECT_EQ(cluster->now(), before) << "what is refused takes no time";

    const policies::RecoveryOutcome outcome = cluster->recover({Recovery::Kind::kRestart, half});
    EXPECT_EQ(outcome.plan, half);
    EXPECT_GE(outcome.pause, scenario.job.checkpoint.restart);
    EXPECT_LT(outcome.pause, scenario.cluster.facility.node_repair) << "it did not wait for the repair";
    EXPECT_EQ(cluster->now() - before, outcome.pause);
    EXPECT_GE(outcome.iterations_lost, 0);
    EXPECT_THROW(cluster->recover({Recovery::Kind::kRestart, half}), std::invalid_argument) << "once is enough";

    const Measurements after = cluster->run(half, 5);
    EXPECT_FALSE(after.loss);
    EXPECT_EQ(after.iterations.size(), 5u);
    EXPECT_EQ(after.ranks.size(), 2u);
    EXPECT_THAT(after.unavailable_gpus, ElementsAre(2, 3));
}

TEST_P(AvailabilityContract, RepeatsAfterARestartAsMuchAsAfterAWait) {
    SKIP_WHERE_MISSING(true, false);
    const scenarios::Scenario scenario = contract_scenario_with_loss();
    const auto cluster = make(scenario);
    run_to_loss(*cluster);
    const int lost = cluster->recover({}).iterations_lost;
    cluster->start_episode(scenario.seed);
    run_to_loss(*cluster);
    EXPECT_EQ(cluster->recover({Recovery::Kind::kRestart, plan_on_one_node(scenario)}).iterations_lost, lost);
}

TEST_P(AvailabilityContract, RefusesPlansWithLostPartsUntilTheyAreBack) {
    SKIP_WHERE_MISSING(true, false);
    const scenarios::Scenario scenario = contract_scenario_with_loss();
    const auto cluster = make(scenario);
    const scenarios::Plan whole = cluster->facts().initial_plan;
    const scenarios::Plan half = plan_on_one_node(scenario);
    run_to_loss(*cluster);
    const Duration lost_at = cluster->now();
    cluster->recover({Recovery::Kind::kRestart, half});
    EXPECT_THROW(cluster->move_to(whole), std::invalid_argument);
    EXPECT_THROW(cluster->run(whole, 1), std::invalid_argument);

    Measurements measured = cluster->run(half, 5);
    while (!measured.unavailable_gpus.empty()) {
        ASSERT_FALSE(measured.ended) << "the node never came back";
        measured = cluster->run(half, 5);
    }
    EXPECT_GE(cluster->now() - lost_at, scenario.cluster.facility.node_repair);
    const Duration before = cluster->now();
    EXPECT_GT(cluster->move_to(whole), Duration());
    EXPECT_GT(cluster->now(), before);
    const Measurements after = cluster->run(whole, 5);
    EXPECT_EQ(after.iterations.size(), 5u);
    EXPECT_EQ(after.ranks.size(), 4u);
    EXPECT_THAT(after.unavailable_gpus, IsEmpty());
}

TEST_P(AvailabilityContract, LosingIdlePartsEndsNoRunButIsTold) {
    SKIP_WHERE_MISSING(true, false);
    const scenarios::Scenario scenario = scenario_with_idle_loss();
    const auto cluster = make(scenario);
    const scenarios::Plan plan = cluster->facts().initial_plan;
    EXPECT_THAT(cluster->run(plan, 1).unavailable_gpus, IsEmpty());
    bool was_lost = false;
    for (Measurements measured = cluster->run(plan, 5); !measured.ended; measured = cluster->run(plan, 5)) {
        EXPECT_FALSE(measured.loss);
        EXPECT_EQ(measured.iterations.size(), 5u);
        if (was_lost && measured.unavailable_gpus.empty()) return;  // repaired
        if (!was_lost && measured.unavailable_gpus.empty()) continue;
        was_lost = true;
        EXPECT_THAT(measured.unavailable_gpus, ElementsAre(2, 3));
    }
    ADD_FAILURE() << "lost: " << was_lost << "; never repaired";
}

TEST_P(AvailabilityContract, HasEverythingAgainInANewEpisode) {
    SKIP_WHERE_MISSING(true, false);
    const auto cluster = make(contract_scenario_with_loss());
    run_to_loss(*cluster);
    cluster->start_episode(1);
    EXPECT_THAT(cluster->run(cluster->facts().initial_plan, 1).unavailable_gpus, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Seam, AvailabilityContract, ::testing::ValuesIn(implementations()),
                         [](const auto& implementation) { return implementation.param.name; });

}  // namespace
}  // namespace headway::tests
