#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/contract/cluster_contract.h"

/// What every implementation of the seam promises where its sensors are off and late, and of several clusters in one
/// process. Sensors of real processors are what they are: there, these cases see noise of their own.
namespace headway::tests {
namespace {

using policies::Duration;
using policies::Measurements;

class SensorsContract : public TrainingClusterContract {};

scenarios::Scenario with_sensors(scenarios::Scenario scenario, const scenarios::Sensors& sensors) {
    scenario.sensors = sensors;
    return scenario;
}

const scenarios::Sensors kNoisy{.time_noise = 0.05, .temperature_noise = 2.0};

/// Drives a cluster through intervals, a switch and a loss.
std::vector<Measurements> drive(policies::TrainingCluster& cluster, const scenarios::Scenario& scenario) {
    cluster.start_episode(scenario.seed);
    scenarios::Plan plan = cluster.facts().initial_plan;
    std::vector<Measurements> all;
    for (int i = 0; i < 12; ++i) {
        if (i == 3) {
            std::swap(plan.gpu_of_rank[0], plan.gpu_of_rank[3]);
            cluster.move_to(plan);
        }
        all.push_back(cluster.run(plan, 3));
        if (all.back().loss) plan = cluster.recover({}).plan;
    }
    return all;
}

TEST_P(SensorsContract, NoiseChangesWhatIsToldAndNotWhatHappens) {
    SKIP_WHERE_MISSING(false, true);
    std::vector<Measurements> exact, noisy;
    const scenarios::Scenario scenario = contract_scenario("[{start: 0 s, jitter: {spread: 0.03}}]");
    { exact = drive(*make(scenario), scenario); }
    { noisy = drive(*make(with_sensors(scenario, kNoisy)), scenario); }
    ASSERT_EQ(noisy.size(), exact.size());
    for (std::size_t i = 0; i < exact.size(); ++i) {
        EXPECT_EQ(noisy[i].iterations, exact[i].iterations);
        ASSERT_EQ(noisy[i].ranks.size(), exact[i].ranks.size());
        for (std::size_t rank = 0; rank < exact[i].ranks.size(); ++rank) {
            const double told = noisy[i].ranks[rank].compute / exact[i].ranks[rank].compute;
            EXPECT_NE(told, 1.0);
            EXPECT_NEAR(told, 1.0, 0.3);
            EXPECT_NE(noisy[i].ranks[rank].temperature_c, exact[i].ranks[rank].temperature_c);
            EXPECT_EQ(noisy[i].ranks[rank].memory_used_bytes, exact[i].ranks[rank].memory_used_bytes);
        }
    }
}

TEST_P(SensorsContract, GivesEqualEpisodesForEqualSeedsWithNoiseToo) {
    SKIP_WHERE_MISSING(false, true);
    scenarios::Sensors sensors = kNoisy;
    sensors.delay_intervals = 2;
    const scenarios::Scenario scenario = with_sensors(contract_scenario_with_loss(), sensors);
    const auto cluster = make(scenario);
    const std::vector<Measurements> first = drive(*cluster, scenario);
    const std::vector<Measurements> second = drive(*cluster, scenario);
    ASSERT_EQ(first.size(), second.size());
    for (std::size_t i = 0; i < first.size(); ++i) {
        SCOPED_TRACE(i);
        expect_equal(second[i], first[i]);
    }
}

TEST_P(SensorsContract, LateMeasurementsAreThoseOfTheIntervalBefore) {
    SKIP_WHERE_MISSING(false, true);
    const scenarios::Scenario scenario =
        contract_scenario("[{start: 0 s, jitter: {spread: 0.03}}]", "{iterations: 100}");
    std::vector<Measurements> exact, late;
    const auto told = [&](const scenarios::Sensors& sensors) {
        const auto cluster = make(with_sensors(scenario, sensors));
        std::vector<Measurements> all;
        for (int i = 0; i < 6; ++i) all.push_back(cluster->run(cluster->facts().initial_plan, 2));
        return all;
    };
    exact = told({.time_noise = 0.05});
    late = told({.time_noise = 0.05, .delay_intervals = 2});
    for (std::size_t i = 0; i < late.size(); ++i) {
        const Measurements& then = exact[i < 2 ? 0 : i - 2];
        EXPECT_EQ(late[i].iterations, exact[i].iterations) << "the job's own clock is not late";
        ASSERT_EQ(late[i].ranks.size(), then.ranks.size());
        for (std::size_t rank = 0; rank < then.ranks.size(); ++rank)
            EXPECT_EQ(late[i].ranks[rank].compute, then.ranks[rank].compute) << i;
    }
}

TEST_P(SensorsContract, NothingMeasuredUnderOnePlanIsTakenForAnothers) {
    SKIP_WHERE_MISSING(false, true);
    const scenarios::Scenario scenario =
        with_sensors(contract_scenario("[]", "{iterations: 100}"), {.delay_intervals = 1});
    const auto cluster = make(scenario);
    const scenarios::Plan half = plan_on_one_node(scenario);
    EXPECT_EQ(cluster->run(cluster->facts().initial_plan, 2).ranks.size(), 4u);
    cluster->move_to(half);
    const Measurements none = cluster->run(half, 2);
    EXPECT_TRUE(none.ranks.empty());
    EXPECT_TRUE(none.groups.empty());
    EXPECT_EQ(none.iterations.size(), 2u);
    EXPECT_EQ(cluster->run(half, 2).ranks.size(), 2u);
}

TEST_P(SensorsContract, SeveralClustersDoNotDisturbEachOther) {
    SKIP_WHERE_MISSING(false, true);
    if (!GetParam().several_at_a_time) GTEST_SKIP() << "one at a time in a process";
    const scenarios::Scenario scenario = with_sensors(contract_scenario_with_loss(), kNoisy);
    const std::vector<Measurements> alone = drive(*make(scenario), scenario);
    const auto one = make(scenario);
    const auto other = make(scenario);
    other->move_to(plan_on_one_node(scenario));
    std::vector<Measurements> together;
    scenarios::Plan plan = one->facts().initial_plan;
    for (int i = 0; i < 12; ++i) {
        if (i == 3) {
            std::swap(plan.gpu_of_rank[0], plan.gpu_of_rank[3]);
            one->move_to(plan);
        }
        other->run(plan_on_one_node(scenario), i);
        together.push_back(one->run(plan, 3));
        if (together.back().loss) plan = one->recover({}).plan;
        if (i == 6) other->start_episode(5);
    }
    ASSERT_EQ(together.size(), alone.size());
    for (std::size_t i = 0; i < alone.size(); ++i) {
        SCOPED_TRACE(i);
        expect_equal(together[i], alone[i]);
    }
}

INSTANTIATE_TEST_SUITE_P(Seam, SensorsContract, ::testing::ValuesIn(implementations()),
                         [](const auto& implementation) { return implementation.param.name; });

}  // namespace
}  // namespace headway::tests
