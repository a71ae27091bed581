#include <benchmark/benchmark.h>

#include "scenarios/transfer/switch_costs.h"
#include "tests/benchmark/switches.h"

namespace headway::benchmarks {
namespace {

/// One candidate of a plan whose own figures are known: what the planner pays.
void one_candidate(benchmark::State& state, Switch what, int replicas) {
    const SwitchCase at(what, replicas);
    scenarios::SwitchEstimate estimate(at.job, at.cluster, at.from);
    for (auto _ : state) benchmark::DoNotOptimize(estimate.to(at.to));
    const scenarios::SwitchCosts costs = estimate.to(at.to);
    state.counters["GB"] = costs.moved.in_gb();
    state.counters["pause_ms"] = costs.live_pause.ms();
    state.counters["background_s"] = costs.background.s();
}

// t8 p16 on 1,024 GPUs (8 replicas) and 16,384 (128 replicas).
BENCHMARK_CAPTURE(one_candidate, shares_1024, Switch::kShares, 8)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(one_candidate, layer_in_all_replicas_1024, Switch::kLayerEverywhere, 8)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(one_candidate, layer_in_one_replica_1024, Switch::kLayerInOneReplica, 8)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(one_candidate, two_nodes_swapped_1024, Switch::kNodesSwapped, 8)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(one_candidate, p16_to_p8_1024, Switch::kPipelineHalved, 8)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(one_candidate, t8_to_t4_1024, Switch::kTensorHalved, 8)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(one_candidate, shares_16384, Switch::kShares, 128)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(one_candidate, layer_in_all_replicas_16384, Switch::kLayerEverywhere, 128)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(one_candidate, layer_in_one_replica_16384, Switch::kLayerInOneReplica, 128)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(one_candidate, two_nodes_swapped_16384, Switch::kNodesSwapped, 128)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(one_candidate, p16_to_p8_16384, Switch::kPipelineHalved, 128)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(one_candidate, t8_to_t4_16384, Switch::kTensorHalved, 128)->Unit(benchmark::kMicrosecond);

/// What the estimate itself costs, once a decision.
void estimate_16384(benchmark::State& state) {
    const SwitchCase at(Switch::kShares, 128);
    for (auto _ : state) benchmark::DoNotOptimize(scenarios::SwitchEstimate(at.job, at.cluster, at.from).to(at.from));
}
BENCHMARK(estimate_16384)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace headway::benchmarks
