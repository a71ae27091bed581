#include <benchmark/benchmark.h>

#include <string>

#include "tests/benchmark/static_episode.h"

/// Decision intervals of ten iterations on 64 GPUs, as training and look-ahead make them: candidates of the generator
/// included, nothing recorded. One core.
namespace headway::benchmarks {
namespace {

void steps(benchmark::State& state, const std::string& disturbances, const scenarios::Sensors& sensors = {},
           sim::SimulationOptions options = sim::SimulationOptions::quick()) {
    const scenarios::Scenario scenario = sixty_four_gpus(disturbances, sensors);
    std::int64_t decisions = 0;
    double simulated_s = 0.0;
    for (auto _ : state) {
        const StaticEpisode done = static_episode(scenario, options);
        decisions += done.decisions;
        simulated_s = done.simulated_s;
    }
    state.counters["decisions/s"] = benchmark::Counter(static_cast<double>(decisions), benchmark::Counter::kIsRate);
    state.counters["simulated s"] = simulated_s;
}

void steps_64_gpus_healthy(benchmark::State& state) {
    steps(state, "[]");
}
BENCHMARK(steps_64_gpus_healthy)->Unit(benchmark::kMillisecond);

void steps_64_gpus_disturbed(benchmark::State& state) {
    steps(state, kMixedDisturbances);
}
BENCHMARK(steps_64_gpus_disturbed)->Unit(benchmark::kMillisecond);

void steps_64_gpus_disturbed_noisy_sensors(benchmark::State& state) {
    steps(state, kMixedDisturbances, {.time_noise = 0.03, .temperature_noise = 1.0, .delay_intervals = 1});
}
BENCHMARK(steps_64_gpus_disturbed_noisy_sensors)->Unit(benchmark::kMillisecond);

void steps_64_gpus_disturbed_with_contention(benchmark::State& state) {
    steps(state, kMixedDisturbances, {}, {.heat_together = true});
}
BENCHMARK(steps_64_gpus_disturbed_with_contention)->Unit(benchmark::kMillisecond);

void steps_64_gpus_disturbed_with_contention_one_by_one(benchmark::State& state) {
    steps(state, kMixedDisturbances, {}, {});
}
BENCHMARK(steps_64_gpus_disturbed_with_contention_one_by_one)->Unit(benchmark::kMillisecond);

void steps_64_gpus_jitter(benchmark::State& state) {
    steps(state, "[{start: 0 s, jitter: {spread: 0.02}}]");
}
BENCHMARK(steps_64_gpus_jitter)->Unit(benchmark::kMillisecond);

void steps_64_gpus_uneven_sequences(benchmark::State& state) {
    steps(state, "[{start: 0 s, sequence_lengths: {spread: 0.3}}]");
}
BENCHMARK(steps_64_gpus_uneven_sequences)->Unit(benchmark::kMillisecond);

void cluster_64_gpus_made(benchmark::State& state) {
    const scenarios::Scenario scenario = sixty_four_gpus(kMixedDisturbances);
    for (auto _ : state) sim::SimulatedCluster cluster(scenario, nullptr, sim::SimulationOptions::quick());
}
BENCHMARK(cluster_64_gpus_made)->Unit(benchmark::kMillisecond);

void episode_64_gpus_started(benchmark::State& state) {
    sim::SimulatedCluster cluster(sixty_four_gpus(kMixedDisturbances), nullptr, sim::SimulationOptions::quick());
    for (auto _ : state) cluster.start_episode(1);
}
BENCHMARK(episode_64_gpus_started)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace headway::benchmarks
