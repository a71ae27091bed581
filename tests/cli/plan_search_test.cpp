// The search of headway plan against simulating every legal layout of small jobs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>

#include "cli/contended_times.h"
#include "policies/planning/layout_search.h"
#include "scenarios/costs/memory.h"
#include "scenarios/language/read.h"
#include "sim/simulated_cluster.h"
#include "tests/paths.h"

namespace headway::tests {
namespace {

using policies::GpuGroups;
using policies::GpuOrder;
using policies::LayoutPoint;
using policies::PlanningTask;
using scenarios::Duration;
using scenarios::Plan;
using scenarios::Scenario;

constexpr double kWithin = 1.03;  // of the best by simulation

struct SmallJob {
    std::string name;
    std::string job;
    std::string cluster;
    std::string strategy;
};

void PrintTo(const SmallJob& job, std::ostream* out) {
    *out << job.name;
}

Scenario scenario_of(const SmallJob& small) {
    const std::string yaml = "job: {" + small.job + "}\ncluster: {" + small.cluster + "}\nstrategy: {" +
                             small.strategy + "}\nrun: {iterations: 1}\n";
    const auto folder = source_directory() / "scenarios";
    return scenarios::parse_scenario(yaml, small.name + ".yaml", folder, {folder});
}

PlanningTask task_of(const Scenario& scenario) {
    PlanningTask task;
    task.job = scenario.job;
    task.cluster = scenario.cluster;
    task.strategy = policies::opened(scenario.strategy);
    return task;
}

Duration simulated(Scenario scenario, const PlanningTask& task, const LayoutPoint& point, const Plan& plan) {
    scenario.strategy = policies::resolved_strategy(task, plan);
    scenario.job = policies::job_of(task, point);
    return sim::SimulatedCluster(scenario, nullptr).healthy_iteration();
}

/// As headway plan searches; its simulator is gone afterwards, since a process has one at a time.
policies::SearchResult searched(const Scenario& scenario, const PlanningTask& task) {
    cli::ContendedTimes contended(scenario, task, std::nullopt);
    policies::SearchOptions options;
    options.plans = 1;
    if (cli::ContendedTimes::matter(task.cluster)) options.with_contention = std::ref(contended);
    return policies::search_layouts(task, options);
}

class PlanSearch : public ::testing::TestWithParam<SmallJob> {};

TEST_P(PlanSearch, IsWithinThreePerCentOfSimulatingEverything) {
    const Scenario scenario = scenario_of(GetParam());
    const PlanningTask task = task_of(scenario);
    const policies::SearchResult found = searched(scenario, task);
    ASSERT_FALSE(found.plans.empty());
    const Duration proposed = simulated(scenario, task, found.plans.front().point, found.plans.front().plan);

    Duration best = proposed;
    std::string layout = "the proposed one";
    int simulations = 0;
    for (const LayoutPoint& point : policies::layout_points(task, found.tensor_across_nodes)) {
        const GpuGroups groups(task.cluster, policies::usable_gpus(task), point.layout.tensor);
        for (const GpuOrder order : {GpuOrder::kStagesTogether, GpuOrder::kReplicasTogether, GpuOrder::kEndsTogether}) {
            const Plan plan = policies::even_plan(task, point, groups, order);
            if (!scenarios::memory_shortages(policies::job_of(task, point), task.cluster, plan).empty()) continue;
            if (order != GpuOrder::kStagesTogether && point.layout.pipeline == 1) continue;
            const Duration time = simulated(scenario, task, point, plan);
            ++simulations;
            if (time >= best) continue;
            best = time;
            layout =
                scenarios::describe(point.layout) + (order == GpuOrder::kReplicasTogether ? ", replicas together" : "");
        }
    }
    EXPECT_GT(simulations, 50);
    std::printf(
        "%s: proposed %s at %.3f ms simulated (%.3f ms planned), best of %d by simulation %.3f ms: %s (%.2f %%)\n",
        GetParam().name.c_str(), scenarios::describe(found.plans.front().plan.layout).c_str(), proposed.ms(),
        found.plans.front().iteration.ms(), simulations, best.ms(), layout.c_str(), (proposed / best - 1.0) * 100.0);
    EXPECT_LE(proposed.s(), best.s() * kWithin);
}

const std::string kSmallGpt =
    "model: {layers: 4, hidden: 1024, heads: 8, ffn: 4096, vocab: 51200, sequence_length: 1024}, precision: bf16, "
    "global_batch: 16, micro_batch: 1, stack: megatron-lm-2022";
const std::string kDeepGpt =
    "model: {layers: 8, hidden: 2048, heads: 16, ffn: 8192, vocab: 32000, sequence_length: 2048}, precision: bf16, "
    "global_batch: 32, micro_batch: 1, stack: nemo-2024";

INSTANTIATE_TEST_SUITE_P(
    SmallJobs, PlanSearch,
    ::testing::Values(
        SmallJob{"TwoNodes", kSmallGpt, "base: selene, nodes: 2, node: {gpus: 4, nics: 4}",
                 "data: auto, sequence_parallel: true"},
        SmallJob{"FourGpusOfALab", kSmallGpt, "base: lab-4", "data: auto"},
        SmallJob{"SlowNetwork", kDeepGpt,
                 "base: selene, nodes: 4, node: {gpus: 2, nics: 1, network: ethernet-25}, network: {nodes_per_rack: 2, "
                 "oversubscription: 2}",
                 "data: auto, distributed_optimizer: true"},
        SmallJob{"OversubscribedRacks", kDeepGpt,
                 "base: eos, nodes: 4, node: {gpus: 4, nics: 4}, network: {nodes_per_rack: 1, oversubscription: 4}",
                 "data: auto, sequence_parallel: true, overlap: {grad_reduce: true}"},
        SmallJob{"Overlapped", kDeepGpt, "base: eos, nodes: 2",
                 "data: auto, sequence_parallel: true, distributed_optimizer: true, overlap: {grad_reduce: true, "
                 "param_gather: true, pipeline: true}"}),
    [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace headway::tests
