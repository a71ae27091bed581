// What a planner does for each candidate besides the longest path: costs of a plan, and durations under conditions.
#include <benchmark/benchmark.h>

#include "scenarios/costs/layout_costs.h"
#include "scenarios/costs/memory.h"
#include "scenarios/language/read.h"
#include "scenarios/timing/step_times.h"
#include "tests/paths.h"

namespace headway::benchmarks {
namespace {

/// GPT-3 175B on `gpus` A100s, tensor 8, pipeline 16; every fourth replica splits the model in its own way.
struct PlannedJob {
    explicit PlannedJob(int gpus) {
        const auto folder = tests::source_directory() / "scenarios";
        const std::string nodes = std::to_string(gpus / 8), data = std::to_string(gpus / 128);
        scenario = scenarios::read_scenario(
            folder / "gpt3-175b-1024.yaml", {folder},
            {{"cluster.nodes", nodes}, {"strategy.data", data}, {"job.global_batch", std::to_string(gpus / 128 * 16)}});
        plan = scenarios::initial_plan(scenario.strategy, scenario.job, scenario.cluster);
        for (int replica = 0; replica < plan.layout.data; replica += 4) {
            plan.layers_of_cell[static_cast<std::size_t>(replica * 16)] -= 1 + replica / 4 % 4;
            plan.layers_of_cell[static_cast<std::size_t>(replica * 16 + 7)] += 1 + replica / 4 % 4;
        }
        for (int gpu = 0; gpu < gpus; ++gpu)
            conditions.gpus.push_back({1.0 - 0.0001 * (gpu % 97), 1.0 - 0.0001 * (gpu % 89), 1.0});
    }
    scenarios::Scenario scenario;
    scenarios::Plan plan;
    scenarios::Conditions conditions;
};

void costs_of_a_new_layout(benchmark::State& state) {
    const PlannedJob job(static_cast<int>(state.range(0)));
    for (auto _ : state)
        benchmark::DoNotOptimize(scenarios::iteration_costs(job.scenario.job, job.scenario.cluster, job.plan));
}
BENCHMARK(costs_of_a_new_layout)->Arg(1024)->Arg(16384)->Unit(benchmark::kMicrosecond);

void costs_of_other_gpus(benchmark::State& state) {
    const PlannedJob job(static_cast<int>(state.range(0)));
    scenarios::LayoutCosts costs(job.scenario.job, job.scenario.cluster, job.plan.layout, job.plan.gpu_of_rank);
    scenarios::IterationCosts out;
    for (auto _ : state) {
        costs.place(job.plan.gpu_of_rank);
        costs.costs(job.plan, out);
    }
}
BENCHMARK(costs_of_other_gpus)->Arg(1024)->Arg(16384)->Unit(benchmark::kMicrosecond);

void costs_of_a_new_split(benchmark::State& state) {
    const PlannedJob job(static_cast<int>(state.range(0)));
    scenarios::LayoutCosts costs(job.scenario.job, job.scenario.cluster, job.plan.layout, job.plan.gpu_of_rank);
    scenarios::IterationCosts out;
    for (auto _ : state) costs.costs(job.plan, out);
}
BENCHMARK(costs_of_a_new_split)->Arg(1024)->Arg(16384)->Unit(benchmark::kMicrosecond);

void step_timer_constructed(benchmark::State& state) {
    const PlannedJob job(static_cast<int>(state.range(0)));
    const auto costs = scenarios::iteration_costs(job.scenario.job, job.scenario.cluster, job.plan);
    for (auto _ : state) benchmark::DoNotOptimize(scenarios::StepTimer(costs, job.plan, job.scenario.cluster));
}
BENCHMARK(step_timer_constructed)->Arg(1024)->Arg(16384)->Unit(benchmark::kMicrosecond);

void paces_of_conditions(benchmark::State& state) {
    const PlannedJob job(static_cast<int>(state.range(0)));
    const scenarios::StepTimer timer(scenarios::iteration_costs(job.scenario.job, job.scenario.cluster, job.plan),
                                     job.plan, job.scenario.cluster);
    for (auto _ : state) benchmark::DoNotOptimize(timer.paces(job.conditions));
}
BENCHMARK(paces_of_conditions)->Arg(1024)->Arg(16384)->Unit(benchmark::kMicrosecond);

void step_times_of_a_new_split(benchmark::State& state) {
    const PlannedJob job(static_cast<int>(state.range(0)));
    const auto costs = scenarios::iteration_costs(job.scenario.job, job.scenario.cluster, job.plan);
    const scenarios::StepTimer timer(costs, job.plan, job.scenario.cluster);
    const scenarios::PlacedPaces paces = timer.paces(job.conditions);
    scenarios::StepTimes out;
    for (auto _ : state) timer.times(costs, paces, out);
}
BENCHMARK(step_times_of_a_new_split)->Arg(1024)->Arg(16384)->Unit(benchmark::kMicrosecond);

void memory_of_a_plan(benchmark::State& state) {
    const PlannedJob job(static_cast<int>(state.range(0)));
    scenarios::MemoryTable table(job.scenario.job, job.plan.layout);
    const auto memory = scenarios::memory_of_gpus(job.scenario.cluster);
    for (auto _ : state) benchmark::DoNotOptimize(scenarios::fits_memory(table, memory, job.plan));
}
BENCHMARK(memory_of_a_plan)->Arg(1024)->Arg(16384)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace headway::benchmarks
