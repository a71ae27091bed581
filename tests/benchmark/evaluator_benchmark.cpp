#include <benchmark/benchmark.h>

#include "scenarios/timing/evaluator.h"
#include "tests/benchmark/layouts.h"

namespace headway::benchmarks {
namespace {

void evaluate(benchmark::State& state, const scenarios::Plan& plan, bool different, bool delays) {
    scenarios::StepTimes times = times_of(plan, different);
    if (delays) {
        times.delay_activation.assign(times.forward.size(), 1'000);
        times.delay_gradient.assign(times.forward.size(), 1'000);
    }
    scenarios::Evaluator evaluator(plan, true);
    for (auto _ : state) {
        times.forward[0] ^= 1;  // no two iterations alike, so nothing can be remembered
        benchmark::DoNotOptimize(evaluator.iteration_time(times));
    }
    state.counters["iterations/s"] =
        benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

void longest_path_1024_gpus_all_different(benchmark::State& state) {
    evaluate(state, gpt3_on_1024(), true, false);
}
BENCHMARK(longest_path_1024_gpus_all_different)->Unit(benchmark::kMicrosecond);

void longest_path_1024_gpus_all_different_with_delays(benchmark::State& state) {
    evaluate(state, gpt3_on_1024(), true, true);
}
BENCHMARK(longest_path_1024_gpus_all_different_with_delays)->Unit(benchmark::kMicrosecond);

void longest_path_1024_gpus_replicas_equal(benchmark::State& state) {
    evaluate(state, gpt3_on_1024(), false, false);
}
BENCHMARK(longest_path_1024_gpus_replicas_equal)->Unit(benchmark::kMicrosecond);

void longest_path_4x4x16_all_different(benchmark::State& state) {
    evaluate(state, small_4_by_4(), true, false);
}
BENCHMARK(longest_path_4x4x16_all_different)->Unit(benchmark::kMicrosecond);

void longest_path_1024_gpus_each_micro_batch_different(benchmark::State& state) {
    const scenarios::Plan plan = gpt3_on_1024();
    scenarios::StepTimes times = times_of(plan, true);
    for (int i = 0; i < 8 * 192; ++i) times.micro_batch_factor.push_back(0.9 + 0.0001 * i);
    scenarios::Evaluator evaluator(plan, true);
    for (auto _ : state) benchmark::DoNotOptimize(evaluator.iteration_time(times));
    state.counters["iterations/s"] =
        benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(longest_path_1024_gpus_each_micro_batch_different)->Unit(benchmark::kMicrosecond);

void compile_1024_gpus(benchmark::State& state) {
    const scenarios::Plan plan = gpt3_on_1024();
    for (auto _ : state) benchmark::DoNotOptimize(scenarios::Evaluator(plan, true));
}
BENCHMARK(compile_1024_gpus)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace headway::benchmarks
