#include <benchmark/benchmark.h>

#include <string>

#include "policies/episode.h"
#include "policies/policy.h"
#include "scenarios/language/read.h"
#include "sim/simulated_cluster.h"
#include "tests/paths.h"

/// Decision intervals of ten iterations on 64 GPUs, as training and look-ahead make them: candidates of the generator
/// included, nothing recorded. One core.
namespace headway::benchmarks {
namespace {

scenarios::Scenario sixty_four_gpus(const std::string& disturbances, const scenarios::Sensors& sensors = {}) {
    const std::string text = R"(
name: steps
job: {model: gpt3-1.3b, precision: bf16, global_batch: 128, micro_batch: 1, stack: megatron-lm-2022}
cluster: {base: selene, nodes: 8}
strategy: {tensor: 2, pipeline: 4, data: 8}
disturbances: )" + disturbances +
                             "\nrun: {iterations: 2000}\n";
    const auto root = tests::source_directory() / "scenarios";
    scenarios::Scenario scenario = scenarios::parse_scenario(text, "steps.yaml", root, {root});
    scenario.sensors = sensors;
    return scenario;
}

const char* const kMixed =
    "[{start: 20 s, duration: 300 s, airflow: {gpu: 3, resistance_factor: 3}},"
    " {start: 60 s, duration: 200 s, speed_factor: {gpu: 17, factor: 0.6}},"
    " {start: 100 s, duration: 400 s, inlet: {rack: 1, temperature: 38 C}},"
    " {start: 150 s, duration: 300 s, link_bandwidth: {node_network: 5, factor: 0.3}},"
    " {start: 300 s, duration: 200 s, co_tenant: {node: 2, compute_share: 0.3, memory_share: 0.3}}]";

void steps(benchmark::State& state, const std::string& disturbances, const scenarios::Sensors& sensors = {},
           sim::SimulationOptions options = sim::SimulationOptions::quick()) {
    const scenarios::Scenario scenario = sixty_four_gpus(disturbances, sensors);
    const auto policy = policies::make_policy("static");
    policies::EpisodeSink silent;
    std::int64_t decisions = 0;
    double simulated_s = 0.0;
    for (auto _ : state) {  // everything new, so that nothing is remembered from the episode before
        sim::SimulatedCluster cluster(scenario, nullptr, options);
        policies::CandidateGenerator generator(cluster.facts());
        decisions += policies::run_episode(cluster, generator, *policy, {}, silent).decisions;
        simulated_s = cluster.now().s();
    }
    state.counters["decisions/s"] = benchmark::Counter(static_cast<double>(decisions), benchmark::Counter::kIsRate);
    state.counters["simulated s"] = simulated_s;
}

void steps_64_gpus_healthy(benchmark::State& state) {
    steps(state, "[]");
}
BENCHMARK(steps_64_gpus_healthy)->Unit(benchmark::kMillisecond);

void steps_64_gpus_disturbed(benchmark::State& state) {
    steps(state, kMixed);
}
BENCHMARK(steps_64_gpus_disturbed)->Unit(benchmark::kMillisecond);

void steps_64_gpus_disturbed_noisy_sensors(benchmark::State& state) {
    steps(state, kMixed, {.time_noise = 0.03, .temperature_noise = 1.0, .delay_intervals = 1});
}
BENCHMARK(steps_64_gpus_disturbed_noisy_sensors)->Unit(benchmark::kMillisecond);

void steps_64_gpus_disturbed_with_contention(benchmark::State& state) {
    steps(state, kMixed, {}, {.heat_together = true});
}
BENCHMARK(steps_64_gpus_disturbed_with_contention)->Unit(benchmark::kMillisecond);

void steps_64_gpus_disturbed_with_contention_one_by_one(benchmark::State& state) {
    steps(state, kMixed, {}, {});
}
BENCHMARK(steps_64_gpus_disturbed_with_contention_one_by_one)->Unit(benchmark::kMillisecond);

void steps_64_gpus_jitter(benchmark::State& state) {
    steps(state, "[{start: 0 s, jitter: {spread: 0.02}}]");
}
BENCHMARK(steps_64_gpus_jitter)->Unit(benchmark::kMillisecond);

void cluster_64_gpus_made(benchmark::State& state) {
    const scenarios::Scenario scenario = sixty_four_gpus(kMixed);
    for (auto _ : state) sim::SimulatedCluster cluster(scenario, nullptr, sim::SimulationOptions::quick());
}
BENCHMARK(cluster_64_gpus_made)->Unit(benchmark::kMillisecond);

void episode_64_gpus_started(benchmark::State& state) {
    sim::SimulatedCluster cluster(sixty_four_gpus(kMixed), nullptr, sim::SimulationOptions::quick());
    for (auto _ : state) cluster.start_episode(1);
}
BENCHMARK(episode_64_gpus_started)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace headway::benchmarks
