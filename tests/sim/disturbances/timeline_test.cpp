#include "sim/disturbances/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/language/config_error.h"
#include "tests/sim/small_jobs.h"

namespace headway::sim {
namespace {

using namespace std::string_literals;
using scenarios::Cause;
using scenarios::Disturbance;

class TimelineOf : public testing::Test {
  protected:
    /// Two racks of two nodes of eight GPUs.
    Timeline timeline(std::vector<Disturbance> disturbances) {
        scenarios::Scenario scenario;
        scenario.cluster = tests::plain_cluster(4, 8, 2);
        scenario.disturbances = std::move(disturbances);
        return Timeline(scenario);
    }
    static Disturbance from_to(double start_s, double end_s, Cause cause) {
        Disturbance d;
        d.name = "test";
        d.start = Duration::seconds(start_s);
        if (end_s > 0.0) d.duration = Duration::seconds(end_s - start_s);
        d.cause = std::move(cause);
        return d;
    }
    static Duration at(double s) { return Duration::seconds(s); }
};

TEST_F(TimelineOf, ActsFromItsStartAndRestoresAtItsEnd) {
    const Timeline t = timeline({from_to(10, 20, scenarios::Airflow{{.gpu = 9}, 2.5})});
    EXPECT_EQ(t.environment(at(9.999)).surroundings[9].resistance_factor, 1.0);
    EXPECT_EQ(t.environment(at(10)).surroundings[9].resistance_factor, 2.5);
    EXPECT_EQ(t.environment(at(10)).surroundings[8].resistance_factor, 1.0);
    EXPECT_EQ(t.environment(at(20)).surroundings[9].resistance_factor, 1.0);
    EXPECT_EQ(t.next_change(at(0)), at(10));
    EXPECT_EQ(t.next_change(at(10)), at(20));
    EXPECT_GT(t.next_change(at(20)), at(1e9));
    EXPECT_EQ(t.active(at(15)), std::vector<int>{0});
    EXPECT_TRUE(t.active(at(20)).empty());
}

TEST_F(TimelineOf, CausesOnOnePartCombine) {
    const Timeline t = timeline(
        {from_to(0, 0, scenarios::Airflow{{.node = 1}, 2.0}), from_to(0, 0, scenarios::Airflow{{.gpu = 8}, 1.5}),
         from_to(0, 0, scenarios::PowerCap{{.rack = 0}, {300.0}}),
         from_to(0, 0, scenarios::PowerCap{{.gpu = 8}, {200.0}}), from_to(0, 0, scenarios::Inlet{{.node = 1}, {35.0}}),
         from_to(0, 0, scenarios::Inlet{{.gpu = 8}, {30.0}}), from_to(0, 0, scenarios::CoTenant{{.gpu = 8}, 0.25, 0.5}),
         from_to(0, 0, scenarios::SpeedFactor{{.gpu = 8}, 0.5, {}}),
         from_to(0, 0, scenarios::LinkBandwidth{{.node_network = 1}, 0.5}),
         from_to(0, 0, scenarios::LinkBandwidth{{.node_network = 1}, 0.4})});
    const Environment e = t.environment(at(1));
    EXPECT_EQ(e.surroundings[8], (GpuSurroundings{35.0, 3.0, 200.0}));
    EXPECT_EQ(e.surroundings[9], (GpuSurroundings{35.0, 2.0, 300.0}));
    EXPECT_EQ(e.surroundings[16], (GpuSurroundings{25.0, 1.0, 0.0}));
    EXPECT_DOUBLE_EQ(e.compute_share[8], 0.375);
    EXPECT_DOUBLE_EQ(e.memory_share[8], 0.25);
    EXPECT_DOUBLE_EQ(e.node_network[1], 0.2);
    EXPECT_DOUBLE_EQ(t.environment(at(1), {7, 9}).compute_share[8], 0.75) << "without causes 7 and 9";
    EXPECT_DOUBLE_EQ(t.environment(at(1), {7, 9}).node_network[1], 0.5);
}

TEST_F(TimelineOf, AFlapIsDownAtTheStartOfEachPeriod) {
    const Timeline t =
        timeline({from_to(100, 130, scenarios::LinkFlap{{.nic = 17}, Duration::seconds(2), Duration::seconds(10)})});
    const auto up = [&](double s) { return t.environment(at(s)).nic_factor[17] == 1.0; };
    EXPECT_TRUE(up(99));
    EXPECT_FALSE(up(100));
    EXPECT_FALSE(up(101.9));
    EXPECT_TRUE(up(102));
    EXPECT_FALSE(up(110));
    EXPECT_TRUE(up(130));
    EXPECT_EQ(t.next_change(at(100)), at(102));
    EXPECT_EQ(t.next_change(at(102)), at(110));
    EXPECT_EQ(t.next_change(at(122)), at(130));
    EXPECT_EQ(t.environment(at(100)).nic_factor[16], 1.0) << "every GPU has a NIC of its own here";
}

TEST_F(TimelineOf, ARecordedSpeedHoldsUntilTheNextRow) {
    scenarios::SpeedFactor speed{{.gpu = 3}, 1.0, {{Duration::seconds(0), 0.9}, {Duration::seconds(5), 0.4}}};
    const Timeline t = timeline({from_to(50, 0, speed)});
    EXPECT_EQ(t.environment(at(49)).compute_share[3], 1.0);
    EXPECT_EQ(t.environment(at(54.9)).compute_share[3], 0.9);
    EXPECT_EQ(t.environment(at(55)).compute_share[3], 0.4);
    EXPECT_EQ(t.environment(at(5000)).compute_share[3], 0.4);
    EXPECT_EQ(t.next_change(at(50)), at(55));
}

TEST_F(TimelineOf, LossesTakeTheirRepairFromTheFacilityOrTheirOwnDuration) {
    const Timeline t = timeline({from_to(30, 0, scenarios::NodeLoss{2}), from_to(10, 70, scenarios::GpuLoss{5})});
    ASSERT_EQ(t.losses().size(), 2u);
    EXPECT_EQ(t.losses()[0].gpu, 5);
    EXPECT_EQ(t.losses()[0].repair, at(60));
    EXPECT_EQ(t.losses()[1].node, 2);
    EXPECT_EQ(t.losses()[1].repair, at(4 * 3600));
    EXPECT_TRUE(t.active(at(40)).empty()) << "a loss is an event";
}

TEST_F(TimelineOf, RefusesPartsThatDoNotExist) {
    EXPECT_THROW(timeline({from_to(0, 0, scenarios::GpuLoss{32})}), scenarios::ConfigError);
    EXPECT_THROW(timeline({from_to(0, 0, scenarios::Airflow{{.rack = 2}, 2.0})}), scenarios::ConfigError);
    EXPECT_THROW(timeline({from_to(0, 0, scenarios::LinkBandwidth{{.rack_uplink = 2}, 0.5})}), scenarios::ConfigError);
    EXPECT_THROW(timeline({from_to(0, 0, scenarios::LinkBandwidth{{.nic = 0}, 0.0})}), scenarios::ConfigError);
}

}  // namespace
}  // namespace headway::sim
