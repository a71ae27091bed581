#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "policies/training_cluster.h"
#include "tests/contract/contract_scenario.h"
#include "tests/contract/implementations.h"

/// What the files of the contract suite share.
namespace headway::tests {

class TrainingClusterContract : public ::testing::TestWithParam<Implementation> {
  protected:
    std::unique_ptr<policies::TrainingCluster> make(const scenarios::Scenario& scenario) const {
        auto cluster = GetParam().make(scenario);
        cluster->start_episode(scenario.seed);
        return cluster;
    }
    /// For cases that need more of an implementation than this one can give.
    static std::string missing(bool recovery, bool repeatable) {
        if (recovery && !GetParam().no_recovery.empty()) return GetParam().no_recovery;
        if (repeatable && GetParam().real) return "times and sensors of real processors are what they are";
        return "";
    }
};

#define SKIP_WHERE_MISSING(recovery, repeatable) \
    if (const std::string why = missing(recovery, repeatable); !why.empty()) GTEST_SKIP() << why

/// Runs until a loss is reported; fails the test when none comes.
inline policies::Measurements run_to_loss(policies::TrainingCluster& cluster) {
    for (int calls = 0; calls < 10'000; ++calls) {
        policies::Measurements measured = cluster.run(cluster.facts().initial_plan, 5);
        if (measured.loss) return measured;
        if (measured.ended) break;
    }
    ADD_FAILURE() << "the scenario's loss never came";
    return {};
}

inline void expect_equal(const policies::Measurements& a, const policies::Measurements& b) {
    EXPECT_EQ(a.iterations, b.iterations);
    EXPECT_EQ(a.ended, b.ended);
    EXPECT_EQ(a.unavailable_gpus, b.unavailable_gpus);
    EXPECT_EQ(a.loss.has_value(), b.loss.has_value());
    if (a.loss && b.loss) {
        EXPECT_EQ(a.loss->gpus, b.loss->gpus);
        EXPECT_EQ(a.loss->noticed_at, b.loss->noticed_at);
    }
    ASSERT_EQ(a.ranks.size(), b.ranks.size());
    for (std::size_t rank = 0; rank < a.ranks.size(); ++rank) {
        EXPECT_EQ(a.ranks[rank].gpu, b.ranks[rank].gpu);
        EXPECT_EQ(a.ranks[rank].compute, b.ranks[rank].compute);
        EXPECT_EQ(a.ranks[rank].exposed_communication, b.ranks[rank].exposed_communication);
        EXPECT_EQ(a.ranks[rank].idle, b.ranks[rank].idle);
        EXPECT_EQ(a.ranks[rank].temperature_c, b.ranks[rank].temperature_c);
        EXPECT_EQ(a.ranks[rank].sm_clock_mhz, b.ranks[rank].sm_clock_mhz);
        EXPECT_EQ(a.ranks[rank].power_w, b.ranks[rank].power_w);
        EXPECT_EQ(a.ranks[rank].throttle_reasons, b.ranks[rank].throttle_reasons);
        EXPECT_EQ(a.ranks[rank].memory_used_bytes, b.ranks[rank].memory_used_bytes);
    }
    ASSERT_EQ(a.groups.size(), b.groups.size());
    for (std::size_t group = 0; group < a.groups.size(); ++group) {
        EXPECT_EQ(a.groups[group].bus_bytes_per_second, b.groups[group].bus_bytes_per_second);
    }
}

}  // namespace headway::tests
