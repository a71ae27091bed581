#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "tests/sim/small_runs.h"

namespace headway::sim {
namespace {

using scenarios::Duration;
using tests::scenario_with;

const char* const kEventful =
    "[{start: 4 s, duration: 200 s, airflow: {gpu: 1, resistance_factor: 4}}, {start: 20 s, duration: 60 s, inlet: "
    "{rack: 1, temperature: 45 C}}, {start: 30 s, duration: 50 s, speed_factor: {gpu: 5, factor: 0.6}}, {start: 60 s, "
    "duration: 90 s, link_bandwidth: {rack_uplink: 0, factor: 0.1}}, {start: 150 s, node_loss: {node: 2}}, {start: 90 "
    "s, duration: 100 s, power_cap: {node: 3, limit: 250 W}}]";

/// Durations of the iterations of an episode in intervals of ten, waiting after losses.
std::vector<Duration> episode(SimulatedCluster& cluster, std::uint64_t seed) {
    cluster.start_episode(seed);
    std::vector<Duration> all;
    for (bool ended = false; !ended;) {
        const policies::Measurements measured = cluster.run(cluster.facts().initial_plan, 10);
        all.insert(all.end(), measured.iterations.begin(), measured.iterations.end());
        if (measured.loss) cluster.recover({});
        ended = measured.ended;
    }
    all.push_back(cluster.now());
    return all;
}

TEST(Worlds, AnotherOfAScenarioIsLikeTheFirst) {
    // With contention, in one process: they share the one engine.
    const SimulatedCluster first(scenario_with(kEventful, "{time: 400 s}", "{node_repair: 20 s}"), nullptr);
    const std::unique_ptr<SimulatedCluster> one = first.another();
    const std::unique_ptr<SimulatedCluster> two = first.another();
    const std::vector<Duration> alone = episode(*one, 3);
    EXPECT_EQ(episode(*two, 3), alone);
    EXPECT_EQ(episode(*one, 3), alone);
}

TEST(Worlds, ManyScenariosLiveSideBySideWithoutAnEngine) {
    std::vector<std::unique_ptr<SimulatedCluster>> clusters;
    std::vector<std::vector<Duration>> alone;
    for (int i = 0; i < 3; ++i) {
        const std::string disturbances =
            "[{start: " + std::to_string(i) + " s, jitter: {spread: 0.0" + std::to_string(i + 1) + "}}]";
        const scenarios::Scenario scenario = scenario_with(disturbances, "{iterations: 30}");
        {
            SimulatedCluster cluster(scenario, nullptr, SimulationOptions::quick());
            alone.push_back(episode(cluster, 5));
        }
        clusters.push_back(std::make_unique<SimulatedCluster>(scenario, nullptr, SimulationOptions::quick()));
        clusters.back()->start_episode(5);
    }
    std::vector<std::vector<Duration>> together(clusters.size());
    for (int interval = 0; interval < 3; ++interval) {
        for (std::size_t i = 0; i < clusters.size(); ++i) {
            const auto measured = clusters[i]->run(clusters[i]->facts().initial_plan, 10);
            together[i].insert(together[i].end(), measured.iterations.begin(), measured.iterations.end());
        }
    }
    for (std::size_t i = 0; i < clusters.size(); ++i) {
        together[i].push_back(clusters[i]->now());
        EXPECT_EQ(together[i], alone[i]) << i;
    }
}

TEST(Worlds, WithoutHeatTogetherNothingIsLostByRepeatingQuietIterations) {
    const scenarios::Scenario scenario = scenario_with(kEventful, "{time: 600 s}", "{node_repair: 20 s}",
                                                       "{interval: 60 s, detection: 5 s, restart: 5 s}");
    SimulationOptions options;
    options.path = Path::kLongestPath;
    scenarios::RunSink listener;  // whoever listens is told one by one
    SimulatedCluster told(scenario, &listener, options);
    SimulatedCluster untold(scenario, nullptr, options);
    EXPECT_EQ(episode(untold, 1), episode(told, 1));
}

TEST(Worlds, HeatingTogetherKeepsTheTimesOfHeatingOneByOne) {
    for (const char* jitter : {"", ", {start: 0 s, jitter: {spread: 0.02}}"}) {
        std::string disturbances = kEventful;
        disturbances.insert(disturbances.size() - 1, jitter);
        const scenarios::Scenario scenario = scenario_with(disturbances, "{iterations: 1500}", "{node_repair: 20 s}",
                                                           "{interval: 60 s, detection: 5 s, restart: 5 s}");
        SimulationOptions exact;
        exact.path = Path::kLongestPath;
        SimulatedCluster one_by_one(scenario, nullptr, exact);
        SimulatedCluster together(scenario, nullptr, SimulationOptions::quick());
        const Duration wanted = episode(one_by_one, 1).back();
        const Duration found = episode(together, 1).back();
        EXPECT_NEAR(found / wanted, 1.0, 0.002) << jitter;
        EXPECT_GT(wanted, one_by_one.healthy_iteration() * 1500) << "the disturbances do something";
    }
}

TEST(Worlds, AShutdownByHeatIsFoundWhileHeatingTogether) {
    const scenarios::Scenario scenario = scenario_with("[{start: 1 min, airflow: {gpu: 3, resistance_factor: 40}}]",
                                                       "{time: 10 min}", "{spare_nodes: 1, spare_start: 30 s}");
    SimulationOptions exact;
    exact.path = Path::kLongestPath;
    std::vector<Duration> noticed;
    std::vector<std::size_t> trained;
    for (const SimulationOptions& options : {exact, SimulationOptions::quick()}) {
        SimulatedCluster cluster(scenario, nullptr, options);
        policies::Measurements measured;
        trained.push_back(0);
        while (!measured.loss) {
            measured = cluster.run(cluster.facts().initial_plan, 10);
            ASSERT_FALSE(measured.ended);
            trained.back() += measured.iterations.size();
        }
        EXPECT_EQ(measured.loss->gpus, std::vector<int>{3});
        noticed.push_back(measured.loss->noticed_at);
    }
    EXPECT_NEAR(static_cast<double>(trained[1]), static_cast<double>(trained[0]), 1.0);
    EXPECT_NEAR(noticed[1].s(), noticed[0].s(), 2.0);
}

}  // namespace
}  // namespace headway::sim
