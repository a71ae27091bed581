#include <benchmark/benchmark.h>

#include <memory>

#include "tests/benchmark/simulated_plan.h"

namespace headway::benchmarks {
namespace {

void simulate(benchmark::State& state, sim::Path path, bool overlap, bool different) {
    SimulatedPlan plan(path, overlap);
    std::uint64_t iteration = 0;
    for (auto _ : state) benchmark::DoNotOptimize(plan.fresh_iteration(different, ++iteration));
    state.counters["iterations/s"] =
        benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

void flows_1024_gpus_all_different(benchmark::State& state) {
    simulate(state, sim::Path::kFlowsUnfolded, false, true);
}
BENCHMARK(flows_1024_gpus_all_different)->Unit(benchmark::kMillisecond);

void flows_1024_gpus_all_different_overlapped(benchmark::State& state) {
    simulate(state, sim::Path::kFlowsUnfolded, true, true);
}
BENCHMARK(flows_1024_gpus_all_different_overlapped)->Unit(benchmark::kMillisecond);

void flows_1024_gpus_all_different_every_flow_in_simgrid(benchmark::State& state) {
    simulate(state, sim::Path::kFlowsReference, true, true);
}
BENCHMARK(flows_1024_gpus_all_different_every_flow_in_simgrid)->Unit(benchmark::kMillisecond);

void flows_1024_gpus_replicas_folded(benchmark::State& state) {
    simulate(state, sim::Path::kFlows, true, false);
}
BENCHMARK(flows_1024_gpus_replicas_folded)->Unit(benchmark::kMillisecond);

void no_flows_1024_gpus_all_different(benchmark::State& state) {
    simulate(state, sim::Path::kLongestPath, true, true);
}
BENCHMARK(no_flows_1024_gpus_all_different)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace headway::benchmarks
