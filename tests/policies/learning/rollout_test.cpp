#include "policies/learning/rollout.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "policies/policy.h"
#include "tests/policies/learning/slowing_cluster.h"

namespace headway::policies {
namespace {

RolloutOptions some_options() {
    RolloutOptions options;
    options.episode.decision_interval = 10;
    options.episode.max_time = Duration::seconds(250);
    options.group = 5;
    options.scenario = 2;
    return options;
}

Rollout one_rollout(std::uint64_t seed, Duration ends_after = Duration::seconds(100000)) {
    SlowingCluster cluster(ends_after);
    CandidateGenerator generator(cluster.facts());
    scenarios::RandomStream stream(seed, "test.rollout");
    return collect(cluster, generator, fresh_policy(), some_options(), stream);
}

TEST(Rollout, TellsOfEveryDecisionAndWhatBecameOfIt) {
    const Rollout rollout = one_rollout(1);
    ASSERT_GT(rollout.steps.size(), 10u);
    EXPECT_EQ(rollout.group, 5);
    EXPECT_EQ(rollout.scenario, 2);
    EXPECT_FALSE(rollout.terminated) << "cut off by its length";
    EXPECT_GT(rollout.goodput, 0.5);
    EXPECT_LE(rollout.goodput, 1.0);
    double work = 0.0, wall = 0.0;
    for (const Step& step : rollout.steps) {
        ASSERT_LT(static_cast<std::size_t>(step.action), step.features.count());
        EXPECT_LE(step.log_probability, 0.0);
        EXPECT_GE(step.weight, 1.0 - 1e-9) << "no interval is faster than a healthy one";
        EXPECT_NEAR(step.reward * step.weight, 1.0, 1e-6) << "ten iterations in each";
        EXPECT_NEAR(step.time, 1.0 + wall, 1e-9) << "the first decision comes after one interval";
        work += step.reward * step.weight;
        wall += step.weight;
    }
    EXPECT_NEAR((work + 1.0) / (wall + 1.0), rollout.goodput, 1e-9) << "rewards weighted by time are goodput";
}

TEST(Rollout, SaysWhetherTheJobWasOver) {
    EXPECT_TRUE(one_rollout(1, Duration::seconds(120)).terminated);
    EXPECT_FALSE(one_rollout(1, Duration::seconds(1000)).terminated);
}

TEST(Rollout, RepeatsItselfWithItsStream) {
    EXPECT_EQ(one_rollout(3), one_rollout(3));
}

TEST(Rollout, PassesThroughAPipeUnchanged) {
    const Rollout rollout = one_rollout(2);
    const std::string bytes = rollout_bytes(rollout);
    EXPECT_EQ(rollout_from_bytes(bytes), rollout);
    EXPECT_THROW(rollout_from_bytes(bytes.substr(0, bytes.size() - 1)), std::runtime_error);
    EXPECT_THROW(rollout_from_bytes(bytes + "x"), std::runtime_error);
    EXPECT_THROW(rollout_from_bytes("nonsense"), std::runtime_error);
}

TEST(Rollout, OfATeacherHoldsTheTeachersChoices) {
    SlowingCluster cluster(Duration::seconds(100000));
    CandidateGenerator generator(cluster.facts());
    const auto teacher = make_policy("static");
    const Rollout rollout = demonstrate(cluster, generator, *teacher, some_options());
    ASSERT_GT(rollout.steps.size(), 10u);
    EXPECT_EQ(rollout.switches, 0);
    for (const Step& step : rollout.steps) EXPECT_EQ(step.action, 0);
    EXPECT_LT(rollout.goodput, 0.9) << "it sat the slowdown out";
}

}  // namespace
}  // namespace headway::policies
