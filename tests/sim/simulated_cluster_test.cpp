#include "sim/simulated_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>

#include "scenarios/language/config_error.h"
#include "tests/sim/small_runs.h"

namespace headway::sim {
namespace {

using scenarios::Duration;
using scenarios::PauseEvent;
using testing::HasSubstr;
using tests::expect_adds_up;
using tests::Log;
using tests::play;
using tests::Played;
using tests::scenario_with;

TEST(SimulatedCluster, AHealthyRunRepeatsTheHealthyIteration) {
    const Played played = play(scenario_with("[]", "{iterations: 25}"));
    ASSERT_EQ(played.log.iterations.size(), 25u);
    for (const scenarios::IterationEvent& e : played.log.iterations) {
        EXPECT_EQ(e.duration_ns, played.healthy.ns());
        EXPECT_EQ(e.shares.straggling_ns, 0);
    }
    EXPECT_EQ(played.wall.ns(), 25 * played.healthy.ns());
    expect_adds_up(played);
}

TEST(SimulatedCluster, EqualSeedsGiveEqualEventsAndOthersDoNot) {
    const std::string disturbances =
        "[{start: 1 s, jitter: {spread: 0.03}}, {start: 3 s, duration: 20 s, airflow: {gpu: 1, resistance_factor: 4}},"
        " {start: 5 s, sequence_lengths: {spread: 0.2}}, {start: 2 s, duration: 9 s, link_bandwidth: {node_network: 1, "
        "factor: 0.2}},"
        " {start: 8 s, node_loss: {node: 2}}]";
    scenarios::Scenario scenario = scenario_with(disturbances, "{iterations: 60}", "{node_repair: 20 s}");
    const auto digest = [&](std::uint64_t seed, bool memo) {
        scenario.seed = seed;
        SimulationOptions options;
        options.memo = memo;
        options.path = Path::kLongestPath;
        return play(scenario, options).log.digest;
    };
    const std::uint64_t once = digest(7, true);
    EXPECT_EQ(digest(7, true), once);
    EXPECT_EQ(digest(7, false), once) << "the memo changes nothing";
    EXPECT_NE(digest(8, true), once);
}

TEST(SimulatedCluster, ASecondEpisodeInOneProcessRepeatsTheFirstByteForByte) {
    const scenarios::Scenario scenario = scenario_with(
        "[{start: 1 s, duration: 9 s, link_bandwidth: {rack_uplink: 0, factor: 0.1}}, {start: 2 s, power_cap: {node: "
        "3, limit: 250 W}},"
        " {start: 4 s, duration: 8 s, link_flap: {node_network: 1, down: 300 ms, period: 2 s}}]",
        "{iterations: 80}");
    Log log;
    SimulatedCluster cluster(scenario, &log);
    const auto policy = policies::make_policy("static");
    std::vector<std::uint64_t> digests;
    std::vector<Duration> walls;
    for (int i = 0; i < 3; ++i) {
        log.digest = 1;
        policies::CandidateGenerator generator(cluster.facts());
        policies::EpisodeSink silent;
        policies::run_episode(cluster, generator, *policy, {}, silent);
        digests.push_back(log.digest);
        walls.push_back(cluster.now());
    }
    EXPECT_EQ(digests[1], digests[0]);
    EXPECT_EQ(digests[2], digests[0]);
    EXPECT_EQ(walls[1], walls[0]);
    EXPECT_GT(walls[0], cluster.healthy_iteration() * 80) << "the disturbances do something";
}

TEST(SimulatedCluster, AConstantSpeedFactorStretchesTheComputeOfItsStage) {
    const Played played = play(scenario_with("[{start: 0 s, speed_factor: {gpu: 0, factor: 0.5}}]", "{iterations: 5}"));
    // The slow worker is the bottleneck of a 1F1B pipeline: its 16 micro-batches take close to twice as long.
    for (const scenarios::IterationEvent& e : played.log.iterations) {
        EXPECT_GT(static_cast<double>(e.duration_ns), 1.4 * static_cast<double>(played.healthy.ns()));
        EXPECT_LT(static_cast<double>(e.duration_ns), 2.0 * static_cast<double>(played.healthy.ns()));
        EXPECT_EQ(e.disturbance_cost_ns[0], e.shares.straggling_ns);
    }
    expect_adds_up(played);
}

TEST(SimulatedCluster, ADisturbanceCountsFromItsExactMomentAndIsGoneAfterIt) {
    const Played healthy = play(scenario_with("[]", "{iterations: 1}"));
    const double h = healthy.healthy.s();
    SimulationOptions options;
    options.path = Path::kLongestPath;
    // From the middle of the third iteration to the middle of the fifth.
    const Played played =
        play(scenario_with("[{start: " + std::to_string(2.5 * h) + " s, duration: " + std::to_string(3.0 * h) +
                               " s, co_tenant: {node: 0, compute_share: 0.5, memory_share: 0.5}}]",
                           "{iterations: 10}"),
             options);
    const auto& it = played.log.iterations;
    EXPECT_EQ(it[0].duration_ns, played.healthy.ns());
    EXPECT_EQ(it[1].duration_ns, played.healthy.ns());
    EXPECT_GT(it[2].duration_ns, played.healthy.ns());
    EXPECT_GT(it[3].duration_ns, it[2].duration_ns);
    EXPECT_EQ(it[6].duration_ns, played.healthy.ns());
    EXPECT_EQ(it[9].duration_ns, played.healthy.ns());
    expect_adds_up(played);
}

TEST(SimulatedCluster, BlockedAirflowThrottlesItsGpuAndTheCostIsItsOwn) {
    const Played played =
        play(scenario_with("[{start: 10 s, duration: 300 s, airflow: {gpu: 0, resistance_factor: 4}}, {start: 0 s, "
                           "link_delay: {node_network: 3, delay: 1 us}}]",
                           "{time: 900 s}"));
    bool throttled = false;
    for (const scenarios::TelemetryEvent& e : played.log.telemetry_events) {
        if (e.gpu == 0) {
            throttled = throttled || (e.throttle_reasons & 0x20u) != 0;
        } else {
            EXPECT_EQ(e.throttle_reasons & ~0x4u, 0u) << "GPU " << e.gpu;
        }
    }
    EXPECT_TRUE(throttled);
    EXPECT_EQ(played.log.iterations.back().duration_ns, played.log.iterations.front().duration_ns) << "recovered";
    std::int64_t airflow = 0;
    for (const scenarios::IterationEvent& e : played.log.iterations) airflow += e.disturbance_cost_ns[0];
    EXPECT_GT(airflow, 0);
    expect_adds_up(played);
}

TEST(SimulatedCluster, UnevenSequencesKeepTheTokensOfABatch) {
    // One worker: the same work in other portions takes the same time, to the rounding of 16 micro-batches.
    scenarios::Scenario scenario = scenario_with("[{start: 0 s, sequence_lengths: {spread: 0.4}}]", "{iterations: 20}");
    scenario.strategy.layout.data = 1;
    scenario.strategy.layout.pipeline = 1;
    scenario.strategy.layout.tensor = 2;
    scenario.strategy.placement = {0, 1};
    scenario.job.global_batch = 16;
    const Played played = play(scenario);
    for (const scenarios::IterationEvent& e : played.log.iterations)
        EXPECT_NEAR(static_cast<double>(e.duration_ns), static_cast<double>(played.healthy.ns()), 64.0);
}

TEST(SimulatedCluster, JitterHasTheMeanAndSpreadAskedFor) {
    // One GPU whose work is all compute and memory passes, but for launches: relative time is 1 on average, 0.05 around
    // it.
    scenarios::Scenario scenario = scenario_with("[{start: 0 s, jitter: {spread: 0.05}}]", "{iterations: 3000}");
    scenario.strategy.layout.data = 1;
    scenario.strategy.layout.pipeline = 1;
    scenario.strategy.layout.tensor = 1;
    scenario.strategy.placement = {0};
    scenario.job.global_batch = 4;
    const Played played = play(scenario);
    double sum = 0.0, squares = 0.0;
    for (const scenarios::IterationEvent& e : played.log.iterations) {
        const double relative = static_cast<double>(e.duration_ns) / static_cast<double>(played.healthy.ns());
        sum += relative;
        squares += relative * relative;
    }
    const double mean = sum / 3000.0;
    EXPECT_NEAR(mean, 1.0, 0.004);
    EXPECT_NEAR(std::sqrt(squares / 3000.0 - mean * mean), 0.05, 0.01);
}

TEST(SimulatedCluster, AGpuThatHeatShutsDownIsChargedToWhatHeatedIt) {
    const Played played = play(scenario_with(
        "[{start: 0 s, jitter: {spread: 0.001}}, {start: 1 min, airflow: {gpu: 3, resistance_factor: 40}}]",
        "{time: 10 min}", "{spare_nodes: 1, spare_start: 30 s}"));
    ASSERT_FALSE(played.log.pauses.empty());
    const scenarios::PauseEvent& pause = played.log.pauses.front();
    EXPECT_EQ(pause.disturbance, 1);
    EXPECT_THAT(pause.what, testing::HasSubstr("GPU 3 (node 1, shut down by heat)"));
}

TEST(SimulatedCluster, ARecoveryThatTheRunDoesNotSeeEndsWithTheRun) {
    const Played played =
        play(scenario_with("[{start: 1 min, node_loss: {node: 0}}]", "{time: 5 min}", "{node_repair: 4 h}"));
    EXPECT_EQ(played.wall, Duration::seconds(300.0));
    ASSERT_EQ(played.log.pauses.size(), 1u);
    EXPECT_THAT(played.log.pauses[0].what,
                testing::HasSubstr("would have been repaired after 4 h, but the run ended first"));
    EXPECT_THAT(played.log.pauses[0].what, testing::Not(testing::HasSubstr("loading")));
    EXPECT_EQ(played.log.pauses[0].start_ns + played.log.pauses[0].duration_ns, Duration::seconds(300.0).ns());
}

TEST(SimulatedCluster, AWarmFacilityIsSlowerFromTheStartAndOneTooHotIsRefused) {
    Duration last;
    for (const char* inlet : {"20 C", "25 C", "35 C", "45 C", "60 C"}) {
        const Played played = play(scenario_with("[]", "{iterations: 20}", std::string("{inlet: ") + inlet + "}"));
        EXPECT_GE(played.healthy, last) << inlet;
        if (std::string(inlet) > "25 C") {
            EXPECT_GT(played.healthy, last) << inlet;
        }
        last = played.healthy;
        for (const scenarios::IterationEvent& iteration : played.log.iterations)
            EXPECT_NEAR(static_cast<double>(iteration.duration_ns), static_cast<double>(last.ns()),
                        0.01 * static_cast<double>(last.ns()));
    }
    EXPECT_THROW(play(scenario_with("[]", "{iterations: 20}", "{inlet: 100 C}")), scenarios::ConfigError);
}

TEST(SimulatedCluster, IterationsOfHoursAndLinksThatFlapFastEndInNoTime) {
    const Played slow = play(scenario_with(
        "[{start: 1 s, speed_factor: {gpu: 1, factor: 0.001}}, {start: 1 s, speed_factor: {gpu: 1, factor: 0.001}}]",
        "{iterations: 30}"));
    EXPECT_EQ(slow.summary.iterations, 30);
    EXPECT_GT(slow.wall, Duration::seconds(1e5));
    const Played flapping = play(
        scenario_with("[{start: 0 s, link_flap: {node_network: 1, down: 100 ns, period: 200 ns}}]", "{iterations: 5}"));
    EXPECT_GT(flapping.wall, flapping.healthy.scaled(5.0));
}

TEST(SimulatedCluster, SlowLinksThatAlsoFlapComeToAnEnd) {
    const Played played =
        play(scenario_with("[{start: 0 s, link_flap: {node_network: 1, down: 2 s, period: 10 s}}, {start: 0 s, "
                           "link_bandwidth: {node_network: 1, factor: 0.001}},"
                           " {start: 0 s, link_flap: {nic: 2, down: 3 s, period: 7 s}}]",
                           "{iterations: 20}"));
    EXPECT_EQ(played.summary.iterations, 20);
    EXPECT_GT(played.wall, played.healthy.scaled(100.0));
}

TEST(SimulatedCluster, ALinkThatIsDownLongerCostsMoreAndAboutThatLong) {
    // Two iterations a second or so, each of which needs the link: what it is down for is lost.
    double last = 0.0;
    for (const int down_s : {1, 3, 6}) {
        const Played played = play(scenario_with(
            "[{start: 0 s, link_flap: {node_network: 1, down: " + std::to_string(down_s) + " s, period: 20 s}}]",
            "{time: 95 s}"));
        double lost = 0.0;
        for (const scenarios::IterationEvent& e : played.log.iterations)
            lost += 1e-9 * static_cast<double>(e.duration_ns - played.healthy.ns());
        EXPECT_GT(lost, last) << down_s;
        EXPECT_NEAR(lost, 5.0 * down_s, 5.0 * played.healthy.s()) << down_s;
        last = lost;
    }
}

TEST(SimulatedCluster, ARunThatLossesKeepFromAnyProgressEnds) {
    const Played played =
        play(scenario_with("[{start: 1 min, airflow: {gpu: 3, resistance_factor: 100}}]", "{iterations: 100000}"));
    EXPECT_EQ(played.summary.iterations, 0);
    ASSERT_FALSE(played.log.pauses.empty());
    EXPECT_THAT(played.log.pauses.back().what, HasSubstr("the run ends here"));
}

TEST(SimulatedCluster, APlanThatDoesNotFitIsRefusedBeforeAnythingRuns) {
    scenarios::Scenario scenario = scenario_with("[]", "{iterations: 1}");
    for (scenarios::NodeGroup& group : scenario.cluster.node_groups) group.node.gpu.memory = scenarios::Bytes::gib(4);
    try {
        SimulatedCluster cluster(scenario, nullptr);
        FAIL() << "it ran";
    } catch (const scenarios::ConfigError& error) {
        EXPECT_THAT(error.what(), HasSubstr("stage 0 needs"));
        EXPECT_THAT(error.what(), HasSubstr("which has 4.0 GiB"));
    }
}

TEST(SimulatedCluster, OperationsLieWithinTheirIterationAndEndWithIt) {
    class Operations final : public scenarios::RunSink {
      public:
        void iteration(const scenarios::IterationEvent& e) override { duration = e.duration_ns; }
        void operations(std::int64_t, std::int64_t, const std::vector<scenarios::TimelineEntry>& entries) override {
            ++count;
            std::int64_t last = 0;
            for (const scenarios::TimelineEntry& entry : entries) {
                EXPECT_GE(entry.start_ns, 0);
                EXPECT_LE(entry.end_ns, duration);
                last = std::max(last, entry.end_ns);
            }
            EXPECT_EQ(last, duration);
        }
        std::int64_t duration = 0;
        int count = 0;
    } sink;
    SimulationOptions options;
    options.operations = true;
    SimulatedCluster cluster(
        scenario_with("[{start: 3 s, duration: 4 s, link_bandwidth: {rack_uplink: 0, factor: 0.05}},"
                      " {start: 1 s, duration: 5 s, co_tenant: {gpu: 2, compute_share: 0.4}}]",
                      "{iterations: 20}"),
        &sink, options);
    cluster.run(cluster.facts().initial_plan, 20);
    EXPECT_EQ(sink.count, 20);
}

TEST(SimulatedCluster, ALinkThatFlapsFastCountsWithItsMeanBandwidth) {
    // Down for a fifth of every millisecond: as good as four fifths of the bandwidth.
    SimulationOptions options;
    options.path = Path::kLongestPath;
    const Played flapping = play(
        scenario_with("[{start: 0 s, link_flap: {node_network: 1, down: 200 us, period: 1 ms}}]", "{iterations: 3}"),
        options);
    const Played slower = play(
        scenario_with("[{start: 0 s, link_bandwidth: {node_network: 1, factor: 0.8}}]", "{iterations: 3}"), options);
    EXPECT_GT(slower.wall, slower.healthy * 3);
    EXPECT_NEAR(flapping.wall.s() / slower.wall.s(), 1.0, 1e-5);
}

std::int64_t resident_kib() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.rfind("VmRSS:", 0) == 0) return std::stoll(line.substr(6));
    return 0;
}

TEST(SimulatedCluster, MemoryStaysFlat) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "the address sanitizer keeps freed memory";
#endif
    const scenarios::Scenario scenario = scenario_with(
        "[{start: 0 s, jitter: {spread: 0.02}}, {start: 10 s, duration: 100 s, link_bandwidth: {rack_uplink: 0, "
        "factor: 0.1}},"
        " {start: 20 s, duration: 2000 s, airflow: {gpu: 2, resistance_factor: 3}}]",
        "{iterations: 100000}");
    SimulatedCluster cluster(scenario, nullptr);
    cluster.run(cluster.facts().initial_plan, 300);
    const std::int64_t before = resident_kib();
    cluster.run(cluster.facts().initial_plan, 3000);
    EXPECT_LT(resident_kib() - before, 4096) << "KiB after 3,000 more iterations";
}

}  // namespace
}  // namespace headway::sim
