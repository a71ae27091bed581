#include "sim/thermal/fleet.h"

#include <gtest/gtest.h>

#include "tests/sim/small_jobs.h"

namespace headway::sim {
namespace {

using scenarios::Duration;

class FleetOfTwoNodes : public testing::Test {
  protected:
    FleetOfTwoNodes() : cluster_(tests::plain_cluster(2, 8, 2)), fleet_(cluster_), around_(16), busy_(16, 0.8) {
        fleet_.start(around_, busy_);
    }
    scenarios::Cluster cluster_;
    Fleet fleet_;
    std::vector<GpuSurroundings> around_;
    std::vector<double> busy_;
};

TEST_F(FleetOfTwoNodes, StartsWarmAtPaceOneAndStaysThere) {
    EXPECT_TRUE(fleet_.settled());
    for (int i = 0; i < 50; ++i) {
        EXPECT_EQ(fleet_.pace_over(around_, busy_, Duration::seconds(7.3)), std::vector<double>(16, 1.0));
        EXPECT_TRUE(fleet_.advance(around_, busy_, Duration::seconds(7.3)).empty());
        ASSERT_TRUE(fleet_.settled());
    }
}

TEST_F(FleetOfTwoNodes, HotSlotsAreWarmerAndNoSlowerThanTheirOwnReference) {
    EXPECT_GT(fleet_.temperature_c(3, around_[3]), fleet_.temperature_c(2, around_[2]) + 5.0);
    EXPECT_LT(fleet_.reference_mhz(3), fleet_.reference_mhz(2));
}

TEST_F(FleetOfTwoNodes, OnlyTheGpuThatLosesItsAirflowSlowsDownAndItRecoversExactly) {
    std::vector<GpuSurroundings> blocked = around_;
    blocked[4].resistance_factor = 3.0;
    for (int i = 0; i < 60; ++i) fleet_.advance(blocked, busy_, Duration::seconds(10.0));
    EXPECT_TRUE(fleet_.settled()) << "after ten minutes, fourteen time constants";
    const std::vector<double> slow = fleet_.pace_over(blocked, busy_, Duration::seconds(10.0));
    for (std::size_t gpu = 0; gpu < 16; ++gpu) {
        if (gpu == 4)
            EXPECT_LT(slow[gpu], 0.97);
        else
            EXPECT_EQ(slow[gpu], 1.0);
    }
    for (int i = 0; i < 100; ++i) fleet_.advance(around_, busy_, Duration::seconds(10.0));
    EXPECT_EQ(fleet_.pace_over(around_, busy_, Duration::seconds(10.0)), std::vector<double>(16, 1.0));
}

TEST_F(FleetOfTwoNodes, AColdGpuIsNotFasterThanCostsSay) {
    fleet_.cool(around_, Duration::seconds(3600.0));
    EXPECT_FALSE(fleet_.settled());
    EXPECT_EQ(fleet_.pace_over(around_, busy_, Duration::seconds(1.0)), std::vector<double>(16, 1.0));
}

TEST_F(FleetOfTwoNodes, WhatLeavesTheJobCoolsAndComesBackWarm) {
    std::vector<double> without = busy_;
    without[2] = -1.0;
    const double warm = fleet_.temperature_c(2, around_[2]);
    fleet_.take_up(around_, without);
    for (int i = 0; i < 60; ++i) fleet_.advance(around_, without, Duration::seconds(10.0));
    fleet_.take_up(around_, busy_);
    EXPECT_FALSE(fleet_.at_rest(around_, busy_));
    EXPECT_LT(fleet_.temperature_c(2, around_[2]), warm - 5.0);
    for (int i = 0; i < 100; ++i) fleet_.advance(around_, busy_, Duration::seconds(10.0));
    EXPECT_TRUE(fleet_.at_rest(around_, busy_));
    EXPECT_TRUE(fleet_.settled());
    EXPECT_NEAR(fleet_.temperature_c(2, around_[2]), warm, 0.1);
}

TEST_F(FleetOfTwoNodes, TheMeanClockOfALongIterationLiesBetweenItsEnds) {
    std::vector<GpuSurroundings> hot = around_;
    for (GpuSurroundings& around : hot) around.resistance_factor = 1.5;
    const double at_once = fleet_.pace_over(hot, busy_, Duration::seconds(0.1))[1];
    const double over_a_minute = fleet_.pace_over(hot, busy_, Duration::seconds(60.0))[1];
    for (int i = 0; i < 10; ++i) fleet_.advance(hot, busy_, Duration::seconds(60.0));
    const double at_the_end = fleet_.pace_over(hot, busy_, Duration::seconds(60.0))[1];
    EXPECT_GT(at_once, over_a_minute);
    EXPECT_GT(over_a_minute, at_the_end);
}

TEST_F(FleetOfTwoNodes, AirThatDoesNotMoveAtAllEndsInAShutdown) {
    std::vector<GpuSurroundings> sealed = around_;
    sealed[0].resistance_factor = 40.0;
    std::vector<int> lost;
    for (int i = 0; i < 100 && lost.empty(); ++i) lost = fleet_.advance(sealed, busy_, Duration::seconds(5.0));
    EXPECT_EQ(lost, std::vector<int>{0});
}

}  // namespace
}  // namespace headway::sim
