#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "policies/episode.h"
#include "scenarios/language/read.h"
#include "scenarios/record/run_events.h"
#include "sim/simulated_cluster.h"
#include "tests/paths.h"

/// Small scenarios, played to their end.
namespace headway::sim::tests {

/// Everything a run tells, and a digest of it.
class Log final : public scenarios::RunSink {
  public:
    void iteration(const scenarios::IterationEvent& e) override {
        iterations.push_back(e);
        mix(1, e.index, e.start_ns, e.duration_ns, e.repeats);
        const scenarios::TimeShares& s = e.shares;
        mix(s.compute_ns, s.bubble_ns, s.tensor_ns, s.pipeline_ns, s.data_ns, s.straggling_ns, s.recovery_ns);
        for (const std::int64_t cost : e.disturbance_cost_ns) mix(cost);
    }
    void telemetry(const scenarios::TelemetryEvent& e) override {
        telemetry_events.push_back(e);
        mix(2, e.time_ns, e.gpu, std::llround(e.temperature_c * 1e6), std::llround(e.sm_clock_mhz * 1e6),
            e.throttle_reasons);
    }
    void disturbance(const scenarios::DisturbanceEvent& e) override {
        disturbances.push_back(e);
        mix(3, e.time_ns, e.index, e.begins);
    }
    void pause(const scenarios::PauseEvent& e) override {
        pauses.push_back(e);
        mix(4, e.start_ns, e.duration_ns, e.iterations_lost, e.disturbance);
        for (const char c : e.what) mix(c);
    }
    void link_load(const scenarios::LinkLoadEvent& e) override { mix(5, e.time_ns, std::llround(e.utilisation * 1e9)); }

    std::vector<scenarios::IterationEvent> iterations;
    std::vector<scenarios::TelemetryEvent> telemetry_events;
    std::vector<scenarios::DisturbanceEvent> disturbances;
    std::vector<scenarios::PauseEvent> pauses;
    std::uint64_t digest = 1469598103934665603ULL;

  private:
    template <class... T>
    void mix(T... values) {
        ((digest = (digest ^ static_cast<std::uint64_t>(values)) * 1099511628211ULL), ...);
    }
};

/// Eight GPUs on four nodes: two stages, two replicas, two tensor ranks.
inline scenarios::Scenario scenario_with(const std::string& disturbances, const std::string& run,
                                         const std::string& facility = "{}",
                                         const std::string& checkpoint = "{interval: 1 h}") {
    const std::string text = R"(
name: small
job:
  model: gpt3-1.3b
  precision: fp16
  global_batch: 32
  micro_batch: 1
  stack: megatron-lm-2021
  checkpoint: )" + checkpoint +
                             R"(
cluster:
  node_groups:
    - count: 4
      node:
        gpu: A100-SXM4-80GB
        gpus: 2
        fabric: nvlink3
        nics: 2
        network: infiniband-hdr
        host_memory: 256 GiB
        pcie: 24 GB/s
  network: {nodes_per_rack: 2}
  facility: )" + facility + R"(
strategy: {tensor: 2, pipeline: 2, data: 2}
disturbances: )" + disturbances +
                             R"(
policy: static
run: )" + run + "\n";
    const auto root = ::headway::tests::source_directory() / "scenarios";
    return scenarios::parse_scenario(text, "small.yaml", root, {root});
}

struct Played {
    Log log;
    policies::EpisodeSummary summary;
    scenarios::Duration healthy;
    scenarios::Duration wall;
};

inline Played play(const scenarios::Scenario& scenario, SimulationOptions options = {}) {
    Played played;
    SimulatedCluster cluster(scenario, &played.log, options);
    const auto policy = policies::make_policy("static");
    policies::EpisodeOptions episode;
    episode.seed = scenario.seed;
    policies::CandidateGenerator generator(cluster.facts());
    policies::EpisodeSink silent;
    played.summary = policies::run_episode(cluster, generator, *policy, episode, silent);
    played.healthy = cluster.healthy_iteration();
    played.wall = cluster.now();
    return played;
}

inline std::int64_t sum_of_shares(const scenarios::TimeShares& s) {
    return s.compute_ns + s.bubble_ns + s.tensor_ns + s.pipeline_ns + s.data_ns + s.straggling_ns + s.recovery_ns;
}

inline void expect_adds_up(const Played& played) {
    std::int64_t total = 0;
    for (const scenarios::IterationEvent& e : played.log.iterations) {
        EXPECT_EQ(sum_of_shares(e.shares), e.duration_ns);
        total += e.duration_ns;
        const std::int64_t costs =
            std::accumulate(e.disturbance_cost_ns.begin(), e.disturbance_cost_ns.end(), std::int64_t{0});
        EXPECT_TRUE(costs == 0 || costs == e.duration_ns - played.healthy.ns()) << costs;
    }
    for (const scenarios::PauseEvent& e : played.log.pauses) total += e.duration_ns;
    EXPECT_EQ(total, played.wall.ns()) << "iterations and pauses cover the run";
}

}  // namespace headway::sim::tests
