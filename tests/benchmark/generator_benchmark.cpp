#include <algorithm>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "tests/benchmark/decisions.h"

/// CPU time of generating candidates with their predictions, over decisions of random disturbed episodes. A fresh
/// decision is one for which something changed: conditions, plan, GPUs; another one only corrects predictions.
namespace headway::benchmarks {
namespace {

double percentile(std::vector<double> values, double share) {
    if (values.empty()) return 0.0;
    const auto at = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5);
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
    return values[at] * 1e3;
}

void decisions(benchmark::State& state, int nodes, int episodes) {
    std::vector<double> fresh, unchanged, first;
    std::size_t most = 0, sum = 0;
    for (auto _ : state) {
        DecisionCosts costs(nodes);
        for (int seed = 1; seed <= episodes; ++seed)
            for (const DecisionCosts::Decision& decision : costs.episode(static_cast<std::uint64_t>(seed))) {
                (decision.first ? first : decision.fresh ? fresh : unchanged).push_back(decision.seconds);
                most = std::max(most, decision.candidates);
                sum += decision.candidates;
            }
    }
    state.counters["fresh p50 ms"] = percentile(fresh, 0.5);
    state.counters["fresh p99 ms"] = percentile(fresh, 0.99);
    state.counters["fresh most ms"] = percentile(fresh, 1.0);
    state.counters["first p50 ms"] = percentile(first, 0.5);
    state.counters["first p99 ms"] = percentile(first, 0.99);
    state.counters["unchanged p50 ms"] = percentile(unchanged, 0.5);
    std::vector<double> all = fresh;
    all.insert(all.end(), unchanged.begin(), unchanged.end());
    all.insert(all.end(), first.begin(), first.end());
    state.counters["p99 ms"] = percentile(all, 0.99);
    state.counters["fresh"] = static_cast<double>(fresh.size());
    state.counters["decisions"] = static_cast<double>(all.size());
    state.counters["candidates"] = static_cast<double>(sum) / static_cast<double>(all.size());
    state.counters["most candidates"] = static_cast<double>(most);
}

BENCHMARK_CAPTURE(decisions, gpus_64, 8, 150)->Unit(benchmark::kSecond)->Iterations(1);
BENCHMARK_CAPTURE(decisions, gpus_1024, 128, 100)->Unit(benchmark::kSecond)->Iterations(1);
BENCHMARK_CAPTURE(decisions, gpus_16384, 2048, 20)->Unit(benchmark::kSecond)->Iterations(1);

}  // namespace
}  // namespace headway::benchmarks
