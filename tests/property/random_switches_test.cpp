#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <stdexcept>

#include "tests/sim/small_runs.h"

namespace headway::sim {
namespace {

using policies::Measurements;
using policies::Recovery;
using scenarios::Duration;

/// Any plan of the small job that memory may or may not hold, on GPUs that may or may not be there.
scenarios::Plan any_plan(const policies::ClusterFacts& facts, std::mt19937_64& random) {
    const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    scenarios::Plan plan;
    plan.layout = facts.initial_plan.layout;
    plan.layout.tensor = 1 << pick(0, 1);
    plan.layout.pipeline = pick(1, 3);
    plan.layout.data = pick(1, 3);
    std::vector<int> gpus(static_cast<std::size_t>(facts.cluster.gpus()));
    std::iota(gpus.begin(), gpus.end(), 0);
    std::shuffle(gpus.begin(), gpus.end(), random);
    if (plan.layout.world_size() > facts.cluster.gpus()) plan.layout.data = 1;
    gpus.resize(static_cast<std::size_t>(plan.layout.world_size()));
    plan.gpu_of_rank = gpus;
    const auto split = [&](int whole, int parts) {
        std::vector<int> result(static_cast<std::size_t>(parts), 1);
        for (int left = whole - parts; left > 0; --left) ++result[static_cast<std::size_t>(pick(0, parts - 1))];
        return result;
    };
    for (int replica = 0; replica < plan.layout.data; ++replica) {
        const std::vector<int> layers = split(facts.job.model.layers, plan.layout.pipeline);
        plan.layers_of_cell.insert(plan.layers_of_cell.end(), layers.begin(), layers.end());
    }
    plan.micro_batches_of_replica = split(facts.job.global_batch / facts.job.micro_batch, plan.layout.data);
    return plan;
}

bool uses_any(const scenarios::Plan& plan, const std::vector<int>& gpus) {
    return std::any_of(gpus.begin(), gpus.end(), [&](int gpu) {
        return std::find(plan.gpu_of_rank.begin(), plan.gpu_of_rank.end(), gpu) != plan.gpu_of_rank.end();
    });
}

class RandomSwitches : public testing::TestWithParam<int> {};

TEST_P(RandomSwitches, NeverRunBackwardsAndAddUp) {
    const auto seed = static_cast<std::uint64_t>(GetParam());
    scenarios::Scenario scenario = tests::scenario_with(
        "[{start: 5 s, jitter: {spread: 0.02}}, {start: 20 s, gpu_loss: {gpu: 3}}, {start: 40 s, duration: 60 s, "
        "airflow: {gpu: 5, resistance_factor: 4}}, {start: 60 s, duration: 50 s, link_bandwidth: {node_network: 1, "
        "factor: 0.2}}, {start: 90 s, node_loss: {node: 3}}, {start: 100 s, node_loss: {node: 0}}, {start: 2 min, "
        "node_arrival: {nodes: 1}}]",
        "{iterations: 400}", "{node_repair: 50 s, gpu_repair: 30 s, spare_start: 10 s}",
        "{interval: 15 s, detection: 2 s, restart: 3 s}");
    scenario.sensors = {.time_noise = 0.05, .temperature_noise = 1.0, .delay_intervals = GetParam() % 3};
    scenario.strategy.adapt.live = GetParam() % 4 != 0;
    tests::Played played;
    SimulationOptions options = SimulationOptions::quick();
    if (GetParam() % 2 == 0) options.path = Path::kAutomatic;
    SimulatedCluster cluster(scenario, &played.log, options);
    played.healthy = cluster.healthy_iteration();
    std::mt19937_64 random(seed);
    cluster.start_episode(seed);
    scenarios::Plan plan = cluster.facts().initial_plan;
    std::vector<int> out;
    Duration before;
    int moved = 0;
    for (bool ended = false; !ended;) {
        const Measurements measured = cluster.run(plan, static_cast<int>(random() % 6));
        ASSERT_GE(cluster.now(), before);
        before = cluster.now();
        out = measured.unavailable_gpus;
        EXPECT_TRUE(std::is_sorted(out.begin(), out.end()));
        EXPECT_TRUE(measured.ranks.empty() || measured.ranks.size() == plan.gpu_of_rank.size());
        if (!measured.loss) {
            EXPECT_FALSE(uses_any(plan, out)) << "a job runs on what it lost";
        }
        ended = measured.ended;
        if (ended) break;
        const scenarios::Plan wanted = any_plan(cluster.facts(), random);
        try {
            if (measured.loss) {
                const policies::RecoveryOutcome outcome = cluster.recover({Recovery::Kind::kRestart, wanted});
                EXPECT_FALSE(uses_any(wanted, out));
                EXPECT_EQ(cluster.now() - before, outcome.pause);
                plan = outcome.plan;
            } else if (random() % 2 == 0) {
                const Duration pause = cluster.move_to(wanted);
                EXPECT_FALSE(uses_any(wanted, out));
                EXPECT_EQ(cluster.now() - before, pause);
                plan = wanted;
            }
            ++moved;
        } catch (const std::invalid_argument&) {  // does not fit, or needs what is out
            EXPECT_EQ(cluster.now(), before) << "what is refused takes no time";
            if (measured.loss) plan = cluster.recover({}).plan;
        }
        ASSERT_GE(cluster.now(), before);
        before = cluster.now();
    }
    EXPECT_GT(moved, 10);
    std::int64_t total = 0;
    for (const scenarios::IterationEvent& e : played.log.iterations) {
        EXPECT_EQ(tests::sum_of_shares(e.shares), e.duration_ns);
        total += e.duration_ns;
    }
    for (const scenarios::PauseEvent& e : played.log.pauses) total += e.duration_ns;
    EXPECT_EQ(total, cluster.now().ns()) << "iterations and pauses cover the run";
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomSwitches, testing::Range(1, 13));

}  // namespace
}  // namespace headway::sim
