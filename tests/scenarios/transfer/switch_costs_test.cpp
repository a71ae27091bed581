#include "scenarios/transfer/switch_costs.h"

#include <gtest/gtest.h>

#include <random>
#include <stdexcept>

#include "scenarios/costs/checkpoint.h"
#include "scenarios/costs/parameters.h"
#include "scenarios/transfer/transfer_schedule.h"
#include "tests/scenarios/costs/shipped_job.h"
#include "tests/scenarios/transfer/small_plans.h"

namespace headway::scenarios {
namespace {

using transfer_test::all_layouts;
using transfer_test::even_plan;
using transfer_test::shaken;
using transfer_test::text_of;
using transfer_test::tiny_cluster;
using transfer_test::tiny_job;

Job gpt3_job() {
    return job_of(read_model(shipped_catalogue(), "gpt3-175b"), 1, 1536);
}

Plan gpt3_plan(int tensor, int pipeline, int data) {
    Layout layout = layout_of(tensor, pipeline, data);
    layout.distributed_optimizer = true;
    return even_plan(gpt3_job(), layout);
}

TEST(SwitchCosts, EqualPlansCostNothing) {
    const Job job = tiny_job(true);
    const Plan plan = even_plan(job, layout_of(2, 2, 2));
    EXPECT_EQ(switch_costs(job, tiny_cluster(4, 2), plan, plan), SwitchCosts{});
}

TEST(SwitchCosts, AChangeOfSharesMovesNothingAndHardlyPauses) {
    const Job job = gpt3_job();
    const Cluster cluster = dgx_a100(128);
    const Plan from = gpt3_plan(8, 16, 8);
    Plan to = from;
    to.micro_batches_of_replica = {180, 204, 192, 192, 192, 192, 192, 192};
    const SwitchCosts costs = switch_costs(job, cluster, from, to);
    EXPECT_EQ(costs.moved.count(), 0);
    EXPECT_EQ(costs.at_boundary.count(), 0);
    EXPECT_EQ(costs.background, Duration{});
    EXPECT_EQ(costs.extra_memory.count(), 0);
    EXPECT_TRUE(costs.fits_live);
    EXPECT_LT(costs.live_pause, Duration::milliseconds(5));
    EXPECT_EQ(costs.restart_pause,
              checkpoint_costs(job, cluster, from).save + checkpoint_costs(job, cluster, to).restart);
}

TEST(SwitchCosts, CountsWhatTheScheduleMoves) {
    std::mt19937_64 random(3);
    const Cluster cluster = tiny_cluster(2, 4);
    const std::vector<Layout> layouts = all_layouts(8);
    for (const Layout& layout : layouts)
        for (int i = 0; i < 4; ++i) {
            const Job job = tiny_job(random() % 2 == 1);
            const Plan from = shaken(job, layout, 8, random() % 2 == 1, random);
            const Plan to = shaken(job, layouts[random() % layouts.size()], 8, random() % 2 == 1, random);
            const TransferSchedule schedule = transfer_schedule(job, cluster, from, to);
            const SwitchCosts costs = switch_costs(job, cluster, from, to);
            std::int64_t gradients = 0;
            for (const Move& move : schedule.moves)
                if (move.what == StateKind::kOptimizer) gradients += 4 * move.elements.size();
            EXPECT_EQ(costs.moved, schedule.moved) << text_of(from) << " to " << text_of(to);
            EXPECT_EQ(costs.at_boundary.count(), gradients);
        }
}

/// One GPU takes a layer from its neighbour: every figure by hand.
TEST(SwitchCosts, ALayerToAnotherNodeTakesItsBytesOverOneNic) {
    Job job = job_of(gpt(4, 1024, 16, 128, 1024), 1, 8);
    job.stack.gradient_bytes = 4.0;
    Cluster cluster = tiny_cluster(2, 1);
    cluster.network.oversubscription = 1.0;
    Plan from = even_plan(job, layout_of(1, 2, 1));
    Plan to = from;
    to.layers_of_cell = {1, 3};
    const std::int64_t layer = layer_parameters(job.model).total();
    const SwitchCosts costs = switch_costs(job, cluster, from, to);
    EXPECT_EQ(costs.moved.count(), 14 * layer);
    EXPECT_EQ(costs.at_boundary.count(), 4 * layer);
    EXPECT_NEAR(costs.background.s(), 14.0 * static_cast<double>(layer) / 10e9 / kBackgroundShare, 1e-8);
    const SwitchCosts shares_of_it = switch_costs(job, cluster, to, from);
    EXPECT_EQ(shares_of_it.live_pause, costs.live_pause);
    EXPECT_NEAR(costs.live_pause.s(), 4.0 * static_cast<double>(layer) / 10e9 + 0.012, 1e-8);
    // Old layers stay until the new ones are complete, then one layer more than before.
    EXPECT_EQ(costs.extra_memory.count(), 0);
}

TEST(SwitchCosts, AnUplinkThatIsOversubscribedIsTheBottleneck) {
    const Job job = job_of(gpt(8, 64, 8, 32, 512), 1, 64);
    Cluster cluster = dgx_a100(4);
    cluster.network.nodes_per_rack = 2;
    const Plan from = even_plan(job, layout_of(8, 2, 2));
    Plan to = from;
    to.layers_of_cell = same_layers({3, 5}, 2);
    cluster.network.oversubscription = 1.0;
    const SwitchCosts open = switch_costs(job, cluster, from, to);
    cluster.network.oversubscription = 4.0;
    const SwitchCosts narrow = switch_costs(job, cluster, from, to);
    EXPECT_EQ(open.moved, narrow.moved);
    EXPECT_NEAR((narrow.live_pause - open.live_pause) / (open.live_pause - Duration::milliseconds(12)), 3.0, 0.01);
}

TEST(SwitchCosts, ThereAndBackMovesAsMuch) {
    const Job job = gpt3_job();
    const Cluster cluster = dgx_a100(128);
    const Plan here = gpt3_plan(8, 16, 8);
    Plan layers = here;
    layers.layers_of_cell = same_layers({6, 6, 6, 5, 7, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6}, 8);
    Plan one = here;
    one.layers_of_cell[3] = 5;
    one.layers_of_cell[4] = 7;
    Plan swapped = here;
    for (std::size_t i = 0; i < 8; ++i) std::swap(swapped.gpu_of_rank[8 + i], swapped.gpu_of_rank[512 + i]);
    for (const Plan& there : {layers, one, swapped}) {
        const SwitchCosts out = switch_costs(job, cluster, here, there), back = switch_costs(job, cluster, there, here);
        EXPECT_EQ(out.moved, back.moved);
        EXPECT_EQ(out.at_boundary, back.at_boundary);
        EXPECT_NEAR(out.background / back.background, 1.0, 1e-6);
    }
}

/// The aims of a live switch, against the iteration of the job at hand (compute alone, so a lower bound).
TEST(SwitchCosts, StaysWithinTheAimsOnALargeJob) {
    const Job job = gpt3_job();
    const Cluster cluster = dgx_a100(128);
    const Plan from = gpt3_plan(8, 16, 8);
    const double iteration_s = model_flops(job).value / (1024 * cluster.gpu_type(0).peak_half.value);
    Plan shares = from;
    shares.micro_batches_of_replica = {191, 193, 192, 192, 192, 192, 192, 192};
    EXPECT_LT(switch_costs(job, cluster, from, shares).live_pause.s(), 0.02 * iteration_s);
    Plan layers = from;
    layers.layers_of_cell = same_layers({6, 6, 6, 5, 7, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6}, 8);
    const SwitchCosts move = switch_costs(job, cluster, from, layers);
    EXPECT_LT(move.live_pause_behind(Duration::seconds(iteration_s)).s(), 0.2 * iteration_s);
    EXPECT_TRUE(move.fits_live);
    const SwitchCosts degrees = switch_costs(job, cluster, from, gpt3_plan(8, 8, 16));
    EXPECT_LT(degrees.live_pause_behind(Duration::seconds(iteration_s)).s(), iteration_s);
    EXPECT_GT(degrees.restart_pause, job.checkpoint.restart);
    EXPECT_GT(degrees.moved, move.moved);
}

TEST(SwitchCosts, SaysWhereMemoryHoldsNoSecondCopy) {
    const Job job = gpt3_job();
    const Plan from = gpt3_plan(8, 8, 16), to = gpt3_plan(8, 16, 8);
    Cluster cluster = dgx_a100(128);
    const SwitchCosts roomy = switch_costs(job, cluster, from, to);
    EXPECT_GT(roomy.extra_memory.count(), 0);
    cluster.node_groups[0].node.gpu.memory = roomy.peak_memory;
    EXPECT_TRUE(switch_costs(job, cluster, from, to).fits_live);
    cluster.node_groups[0].node.gpu.memory = roomy.peak_memory - Bytes(1);
    EXPECT_FALSE(switch_costs(job, cluster, from, to).fits_live);
    Bytes largest;
    for (const Plan* plan : {&from, &to})
        for (const StageMemory& stage : stage_memory(job, *plan)) largest = std::max(largest, stage.total());
    cluster.node_groups[0].node.gpu.memory = largest;
    EXPECT_FALSE(switch_costs(job, cluster, from, to).fits_live);
    cluster.node_groups[0].node.gpu.memory = largest + roomy.extra_memory;
    EXPECT_TRUE(switch_costs(job, cluster, from, to).fits_live);
}

TEST(SwitchCosts, WhatAnIterationDoesNotCoverFollowsAtFullBandwidth) {
    SwitchCosts costs;
    costs.background = Duration::seconds(6);
    costs.gradients = Duration::seconds(1);
    costs.live_pause = Duration::seconds(1.5);
    EXPECT_EQ(costs.live_pause_behind(Duration::seconds(6)), costs.live_pause);
    EXPECT_EQ(costs.live_pause_behind(Duration::seconds(2)), costs.live_pause + Duration::seconds(2));
    EXPECT_EQ(costs.live_pause_behind(Duration::seconds(6), 0.5), Duration::seconds(1.5 + 1 + 3));
}

TEST(SwitchCosts, RanksOnIdleGpusStartWhileTrainingGoesOn) {
    const Job job = gpt3_job();
    const Cluster cluster = dgx_a100(129);
    const Plan from = gpt3_plan(8, 16, 8);
    Plan to = from;
    for (int i = 0; i < 8; ++i) to.gpu_of_rank[static_cast<std::size_t>(i)] = 1024 + i;
    const SwitchCosts in = switch_costs(job, cluster, from, to);
    EXPECT_GT(in.preparation, Duration::seconds(10));
    EXPECT_LT(in.live_pause, Duration::seconds(1));
    EXPECT_EQ(in.extra_memory.count(), 0);
}

TEST(SwitchCosts, OneEstimateServesManyCandidates) {
    std::mt19937_64 random(9);
    const Job job = tiny_job(true);
    const Cluster cluster = tiny_cluster(4, 2);
    const std::vector<Layout> layouts = all_layouts(8);
    const Plan from = shaken(job, layout_of(2, 2, 2), 8, true, random);
    SwitchEstimate estimate(job, cluster, from);
    for (const Layout& layout : layouts) {
        const Plan to = shaken(job, layout, 8, true, random);
        EXPECT_EQ(estimate.to(to), switch_costs(job, cluster, from, to)) << text_of(to);
    }
    EXPECT_EQ(estimate.to(from), SwitchCosts{});
}

TEST(SwitchCosts, RefusesAPlanThatDoesNotFit) {
    const Job job = tiny_job(false);
    const Cluster cluster = tiny_cluster(2, 2);
    const Plan plan = even_plan(job, layout_of(1, 2, 2));
    Plan broken = plan;
    broken.micro_batches_of_replica[0] = 0;
    EXPECT_THROW(switch_costs(job, cluster, plan, broken), std::invalid_argument);
    EXPECT_THROW(switch_costs(job, cluster, broken, plan), std::invalid_argument);
    EXPECT_THROW(switch_costs(job, cluster, broken, broken), std::invalid_argument);
}

}  // namespace
}  // namespace headway::scenarios
