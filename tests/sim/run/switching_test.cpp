#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "scenarios/transfer/switch_costs.h"
#include "tests/sim/small_runs.h"

namespace headway::sim {
namespace {

using policies::GroupMeasurement;
using scenarios::Duration;
using scenarios::PauseEvent;
using testing::HasSubstr;
using tests::Log;
using tests::scenario_with;

scenarios::Plan with_layers_moved(scenarios::Plan plan) {
    for (std::size_t cell = 0; cell < plan.layers_of_cell.size(); cell += 2) {
        ++plan.layers_of_cell[cell];
        --plan.layers_of_cell[cell + 1];
    }
    return plan;
}

/// Pause of a switch that moves a layer of each replica, after three iterations.
struct Switched {
    Duration pause;
    Duration iteration;  ///< before
    scenarios::SwitchCosts costs;
    Log log;
};

void move_layers(const scenarios::Scenario& scenario, Switched& result) {
    SimulatedCluster cluster(scenario, &result.log, SimulationOptions::quick());
    const scenarios::Plan plan = cluster.facts().initial_plan;
    const scenarios::Plan other = with_layers_moved(plan);
    result.iteration = cluster.run(plan, 3).iterations.back();
    result.costs = scenarios::switch_costs(scenario.job, scenario.cluster, plan, other);
    result.pause = cluster.move_to(other);
    EXPECT_EQ(cluster.run(other, 1).iterations.size(), 1u);
}

TEST(Switching, ALiveSwitchStandsStillForWhatDoesNotHideBehindAnIteration) {
    Switched switched;
    move_layers(scenario_with("[]", "{iterations: 20}"), switched);
    EXPECT_GT(switched.costs.moved, scenarios::Bytes());
    EXPECT_EQ(switched.pause, switched.costs.live_pause_behind(switched.iteration));
    EXPECT_LT(switched.pause, switched.costs.restart_pause);
    ASSERT_EQ(switched.log.pauses.size(), 1u);
    const PauseEvent& pause = switched.log.pauses[0];
    EXPECT_EQ(pause.reason, PauseEvent::Reason::kSwitch);
    EXPECT_EQ(pause.duration_ns, switched.pause.ns());
    EXPECT_THAT(pause.what, HasSubstr("switch to t2 p2 d2"));
    EXPECT_THAT(pause.what, HasSubstr("GiB moved"));
    ASSERT_TRUE(pause.plan);
    EXPECT_EQ(pause.plan->layers_of_cell[0], 13);
}

TEST(Switching, WhereNothingIsLiveItSavesAndRestarts) {
    scenarios::Scenario scenario = scenario_with("[]", "{iterations: 20}");
    scenario.strategy.adapt.live = false;
    Switched switched;
    move_layers(scenario, switched);
    EXPECT_EQ(switched.pause, switched.costs.restart_pause);
    EXPECT_THAT(switched.log.pauses.at(0).what, HasSubstr("by save and restart"));
}

TEST(Switching, TakesAsMuchLongerThanEstimatedAsTheScenarioSays) {
    scenarios::Scenario scenario = scenario_with("[]", "{iterations: 20}");
    Switched once, thrice;
    move_layers(scenario, once);
    scenario.switching.time_factor = 3.0;
    move_layers(scenario, thrice);
    EXPECT_NEAR(thrice.pause.s(), 3.0 * once.pause.s(), 1e-6);
}

TEST(Switching, ASlowLinkThatStateGoesOverStretchesIt) {
    Switched healthy, slow;
    move_layers(scenario_with("[]", "{iterations: 20}"), healthy);
    move_layers(scenario_with("[{start: 0 s, link_bandwidth: {node_network: 1, factor: 0.02}}]", "{iterations: 20}"),
                slow);
    EXPECT_GT(slow.pause, healthy.pause.scaled(2.0));
}

TEST(Switching, EndsWithTheRun) {
    scenarios::Scenario scenario = scenario_with("[]", "{time: 5 s}");
    scenario.strategy.adapt.live = false;
    Log log;
    SimulatedCluster cluster(scenario, &log, SimulationOptions::quick());
    cluster.run(cluster.facts().initial_plan, 1);
    const Duration before = cluster.now();
    EXPECT_EQ(cluster.move_to(with_layers_moved(cluster.facts().initial_plan)), Duration::seconds(5.0) - before);
    EXPECT_EQ(cluster.now(), Duration::seconds(5.0));
}

double bus_bandwidth(const policies::Measurements& measured, GroupMeasurement::Kind kind, int index) {
    for (const GroupMeasurement& group : measured.groups)
        if (group.kind == kind && group.index == index) return group.bus_bytes_per_second;
    ADD_FAILURE() << "no group " << index;
    return 0.0;
}

TEST(Switching, TensorGroupsTellSlowFabricFromASlowGpu) {
    const auto measured = [](const std::string& disturbances) {
        SimulatedCluster cluster(scenario_with(disturbances, "{iterations: 20}"), nullptr, SimulationOptions::quick());
        return cluster.run(cluster.facts().initial_plan, 2);
    };
    const auto healthy = measured("[]");
    const auto slow_gpu = measured("[{start: 0 s, speed_factor: {gpu: 0, factor: 0.5}}]");
    const auto slow_fabric = measured("[{start: 0 s, link_bandwidth: {node_fabric: 0, factor: 0.5}}]");
    const double usual = bus_bandwidth(healthy, GroupMeasurement::Kind::kTensor, 0);
    EXPECT_GT(usual, 10e9);
    EXPECT_LT(usual, 300e9);
    EXPECT_EQ(bus_bandwidth(slow_gpu, GroupMeasurement::Kind::kTensor, 0), usual);
    EXPECT_NEAR(bus_bandwidth(slow_fabric, GroupMeasurement::Kind::kTensor, 0), 0.5 * usual, 1.0);
    EXPECT_EQ(bus_bandwidth(slow_fabric, GroupMeasurement::Kind::kTensor, 1), usual) << "another node";
}

}  // namespace
}  // namespace headway::sim
