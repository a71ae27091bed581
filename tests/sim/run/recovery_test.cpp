#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/sim/small_runs.h"

namespace headway::sim {
namespace {

using scenarios::Duration;
using scenarios::PauseEvent;
using testing::HasSubstr;
using tests::expect_adds_up;
using tests::play;
using tests::Played;
using tests::scenario_with;

TEST(Recovery, ALostNodeIsWaitedForAndItsIterationsAreRepeated) {
    const Played healthy = play(scenario_with("[]", "{iterations: 1}"));
    const double h = healthy.healthy.s();
    // Checkpoints every 5 iterations or so; the loss comes in the ninth iteration after a save.
    const Played played = play(scenario_with(
        "[{start: " + std::to_string(30.5 * h) + " s, node_loss: {node: 1}}]", "{iterations: 50}",
        "{node_repair: 1000 s}", "{interval: " + std::to_string(4.5 * h) + " s, detection: 7 s, restart: 11 s}"));
    const PauseEvent* loss = nullptr;
    std::int64_t last_checkpoint = 0;
    for (const PauseEvent& e : played.log.pauses) {
        if (e.reason == PauseEvent::Reason::kLoss) loss = &e;
        if (loss == nullptr) last_checkpoint = std::stoll(e.what.substr(e.what.rfind(' ') + 1));
    }
    ASSERT_NE(loss, nullptr);
    EXPECT_EQ(loss->disturbance, 0);
    EXPECT_GT(loss->duration_ns, static_cast<std::int64_t>((7 + 1000 + 11) * 1e9));
    EXPECT_LT(loss->duration_ns, static_cast<std::int64_t>((7 + 1000 + 11 + 60 + 1.1 * h) * 1e9));
    EXPECT_THAT(loss->what, HasSubstr("node 1 lost"));
    EXPECT_THAT(loss->what, HasSubstr("no spare node, so the job stood still for 16 min 40 s until it was repaired"));
    EXPECT_THAT(loss->what, HasSubstr("checkpoint of iteration " + std::to_string(last_checkpoint)));
    EXPECT_EQ(played.summary.iterations, 50);
    EXPECT_EQ(played.summary.iterations_lost, loss->iterations_lost);
    EXPECT_EQ(played.log.iterations.size(), static_cast<std::size_t>(50 + loss->iterations_lost));
    std::int64_t repeated = 0;
    for (const scenarios::IterationEvent& e : played.log.iterations) repeated += e.repeats ? 1 : 0;
    EXPECT_EQ(repeated, loss->iterations_lost);
    EXPECT_GT(repeated, 0);
    expect_adds_up(played);
}

TEST(Recovery, ASpareTakesTheLostNodesPlace) {
    const Played played = play(
        scenario_with("[{start: 5 s, gpu_loss: {gpu: 3}}]", "{iterations: 30}", "{spare_nodes: 1, spare_start: 90 s}"));
    ASSERT_EQ(played.log.pauses.size(), 1u);
    EXPECT_THAT(played.log.pauses[0].what, HasSubstr("waited 90 s for a spare node to join"));
    expect_adds_up(played);
}

TEST(Recovery, ALossDuringRecoveryMakesItLonger) {
    const std::string facility = "{node_repair: 500 s}";
    const Played one = play(scenario_with("[{start: 5 s, node_loss: {node: 1}}]", "{iterations: 20}", facility));
    const Played two = play(scenario_with("[{start: 5 s, node_loss: {node: 1}}, {start: 300 s, node_loss: {node: 2}}]",
                                          "{iterations: 20}", facility));
    ASSERT_EQ(two.log.pauses.size(), 1u) << "one recovery for both";
    // Lost at 5 and 300 s, each noticed a minute later and repaired 500 s after that.
    EXPECT_EQ(two.log.pauses[0].duration_ns - one.log.pauses[0].duration_ns, 295'000'000'000);
    expect_adds_up(two);
}

/// The same job on half of the machine: nodes 2 and 3 stand idle.
scenarios::Scenario on_half(scenarios::Scenario scenario) {
    scenario.strategy.layout.data = 1;
    scenario.strategy.placement = {0, 1, 2, 3};
    scenario.strategy.micro_batches_per_replica = {};
    scenario.job.global_batch = 16;
    return scenario;
}

TEST(Recovery, ARestartWithoutTheLostNodeIsToldAndTheNodeComesBackAtRest) {
    const scenarios::Scenario scenario =
        scenario_with("[{start: 5 s, node_loss: {node: 3}}]", "{time: 1000 s}", "{node_repair: 100 s}",
                      "{interval: 2 s, detection: 10 s, restart: 20 s}");
    tests::Log log;
    SimulatedCluster cluster(scenario, &log, SimulationOptions::quick());
    const scenarios::Plan whole = cluster.facts().initial_plan;
    policies::Measurements measured;
    while (!measured.loss) measured = cluster.run(whole, 5);
    EXPECT_THAT(measured.unavailable_gpus, testing::ElementsAre(6, 7));

    scenarios::Plan half = whole;
    half.layout.data = 1;
    half.gpu_of_rank = {0, 1, 4, 5};
    half.layers_of_cell.resize(2);
    half.micro_batches_of_replica = {32};
    const policies::RecoveryOutcome outcome = cluster.recover({policies::Recovery::Kind::kRestart, half});
    const PauseEvent& loss = log.pauses.back();
    EXPECT_EQ(loss.reason, PauseEvent::Reason::kLoss);
    EXPECT_EQ(loss.disturbance, 0);
    EXPECT_EQ(loss.iterations_lost, outcome.iterations_lost);
    EXPECT_THAT(loss.what, HasSubstr("node 3 lost in iteration"));
    EXPECT_THAT(loss.what, HasSubstr("restarted without waiting under t2 p2 d1"));
    ASSERT_TRUE(loss.plan);
    EXPECT_EQ(*loss.plan, half);

    while (!measured.unavailable_gpus.empty() || measured.loss) measured = cluster.run(half, 5);
    EXPECT_NEAR(cluster.now().s(), 5.0 + 10.0 + 100.0, 10.0) << "repaired, and told at the end of an interval";
    cluster.move_to(whole);
    measured = cluster.run(whole, 1);
    EXPECT_LT(measured.ranks.back().temperature_c, measured.ranks.front().temperature_c);
    cluster.run(whole, 100);
    EXPECT_EQ(cluster.run(whole, 10).iterations.back(), cluster.healthy_iteration());
    for (const scenarios::GpuSummary& gpu : cluster.gpu_summaries())
        EXPECT_EQ(gpu.mean_speed, 1.0) << "GPU " << gpu.gpu << ": none was slow, some had nothing to do for a while";
}

TEST(Recovery, LosingAMachineTheJobDoesNotUseIsHarmless) {
    const Played played = play(on_half(scenario_with("[{start: 2 s, node_loss: {node: 3}}]", "{iterations: 20}")));
    EXPECT_EQ(played.summary.iterations_lost, 0);
    EXPECT_EQ(played.wall.ns(), 20 * played.healthy.ns());
    ASSERT_EQ(played.log.disturbances.size(), 1u);
}

TEST(Recovery, AnIdleMachinesLossDuringRecoveryHidesNoneOfTheJobs) {
    const Played played =
        play(on_half(scenario_with("[{start: 5 s, node_loss: {node: 1}}, {start: 200 s, node_loss: {node: 3}}, {start: "
                                   "300 s, gpu_loss: {gpu: 0}}]",
                                   "{iterations: 20}", "{node_repair: 500 s, gpu_repair: 700 s}",
                                   "{interval: 1 h, detection: 10 s, restart: 0 s}")));
    ASSERT_EQ(played.log.pauses.size(), 1u) << "one recovery for both";
    EXPECT_THAT(played.log.pauses[0].what, HasSubstr("GPU 0 (node 0)"));
    // From the end of the last iteration before 5 s until 300 + 10 + 700 s and the loading of the checkpoint.
    EXPECT_GE(played.log.pauses[0].start_ns + played.log.pauses[0].duration_ns, 1'010'000'000'000);
    EXPECT_LT(played.log.pauses[0].start_ns + played.log.pauses[0].duration_ns, 1'030'000'000'000);
    expect_adds_up(played);
}

}  // namespace
}  // namespace headway::sim
