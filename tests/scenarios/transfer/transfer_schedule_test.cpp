#include "scenarios/transfer/transfer_schedule.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <stdexcept>

#include "tests/paths.h"
#include "tests/scenarios/costs/shipped_job.h"
#include "tests/scenarios/transfer/every_element.h"
#include "tests/scenarios/transfer/small_plans.h"

namespace headway::scenarios {
namespace {

using transfer_test::all_layouts;
using transfer_test::Element;
using transfer_test::even_plan;
using transfer_test::shaken;
using transfer_test::text_of;
using transfer_test::tiny_cluster;
using transfer_test::tiny_job;

int distance(const Cluster& cluster, int a, int b) {
    const int node_a = cluster.node_of(a), node_b = cluster.node_of(b);
    if (node_a == node_b) return 0;
    return cluster.rack_of_node(node_a) == cluster.rack_of_node(node_b) ? 1 : 2;
}

Block block_of(const Element& element) {
    return {std::get<0>(element), std::get<1>(element)};
}

/// Everything that must hold of a schedule, element by element.
void check_schedule(const Job& job, const Cluster& cluster, const Plan& from, const Plan& to,
                    const std::vector<int>& lost) {
    SCOPED_TRACE("from " + text_of(from) + " to " + text_of(to));
    const int gpus = cluster.gpus();
    auto before = transfer_test::elements_of_gpus(job, from, gpus);
    const auto wanted = transfer_test::elements_of_gpus(job, to, gpus);
    for (const int gpu : lost) before[static_cast<std::size_t>(gpu)].clear();
    const TransferSchedule schedule = transfer_schedule(job, cluster, from, to, lost);

    std::vector<std::set<Element>> received(static_cast<std::size_t>(gpus));
    std::vector<Traffic> traffic(static_cast<std::size_t>(gpus));
    std::int64_t bytes = 0, from_checkpoint = 0;
    for (const Move& move : schedule.moves) {
        ASSERT_FALSE(move.elements.empty());
        bytes += move.bytes().count();
        traffic[static_cast<std::size_t>(move.to_gpu)].in += move.bytes();
        if (move.from_gpu == kFromCheckpoint) from_checkpoint += move.bytes().count();
        if (move.from_gpu != kFromCheckpoint) traffic[static_cast<std::size_t>(move.from_gpu)].out += move.bytes();
        for (std::int64_t e = move.elements.begin; e < move.elements.end; ++e) {
            const Element element{move.block.kind, move.block.layer, move.what, e};
            ASSERT_TRUE(received[static_cast<std::size_t>(move.to_gpu)].insert(element).second) << "sent twice";
            ASSERT_FALSE(before[static_cast<std::size_t>(move.to_gpu)].contains(element)) << "was there already";
            ASSERT_TRUE(wanted[static_cast<std::size_t>(move.to_gpu)].contains(element)) << "nobody asked for it";
            int nearest = 3;
            for (int gpu = 0; gpu < gpus; ++gpu)
                if (before[static_cast<std::size_t>(gpu)].contains(element))
                    nearest = std::min(nearest, distance(cluster, gpu, move.to_gpu));
            if (move.from_gpu == kFromCheckpoint) {
                ASSERT_EQ(nearest, 3) << "an owner is left";
            } else {
                ASSERT_TRUE(before[static_cast<std::size_t>(move.from_gpu)].contains(element)) << "not the sender's";
                ASSERT_EQ(distance(cluster, move.from_gpu, move.to_gpu), nearest) << "a nearer owner was passed over";
            }
        }
    }
    for (int gpu = 0; gpu < gpus; ++gpu)
        for (const Element& element : wanted[static_cast<std::size_t>(gpu)]) {
            // Padding that only the new plan has is made on the spot.
            if (std::get<3>(element) >= block_elements(job, from.layout, block_of(element).kind)) continue;
            ASSERT_TRUE(before[static_cast<std::size_t>(gpu)].contains(element) ||
                        received[static_cast<std::size_t>(gpu)].contains(element))
                << "GPU " << gpu << " lacks an element of block " << static_cast<int>(std::get<0>(element))
                << ", layer " << std::get<1>(element);
        }
    EXPECT_EQ(schedule.moved.count(), bytes);
    EXPECT_EQ(schedule.from_checkpoint.count(), from_checkpoint);
    EXPECT_EQ(schedule.by_gpu, traffic);
}

TEST(TransferSchedule, GivesEveryGpuExactlyWhatItLacksFromTheNearestOwner) {
    const Cluster cluster = tiny_cluster(4, 2);
    const std::vector<Layout> layouts = all_layouts(8);
    std::mt19937_64 random(5);
    const std::size_t rounds = tests::long_tests() ? layouts.size() : 3;
    const std::array<Job, 2> jobs = {tiny_job(false, 3), tiny_job(true, 3)};
    for (const Layout& a : layouts)
        for (std::size_t i = 0; i < rounds; ++i) {
            const Layout& b = tests::long_tests() ? layouts[i] : layouts[random() % layouts.size()];
            const Job& job = jobs[random() % 2];
            const Plan from = shaken(job, a, 8, random() % 2 == 1, random);
            const Plan to = shaken(job, b, 8, random() % 2 == 1, random);
            check_schedule(job, cluster, from, to, {});
            if (testing::Test::HasFatalFailure()) return;
        }
}

TEST(TransferSchedule, LostGpusOwnNothingAndTheCheckpointFillsIn) {
    const Cluster cluster = tiny_cluster(4, 2);
    const std::vector<Layout> layouts = all_layouts(8);
    std::mt19937_64 random(6);
    for (const Layout& a : layouts) {
        const Job job = tiny_job(random() % 2 == 1, 3);
        const Plan from = shaken(job, a, 8, random() % 2 == 1, random);
        Layout b;
        do b = layouts[random() % layouts.size()];
        while (b.world_size() > 6);
        const Plan to = shaken(job, b, 8, random() % 2 == 1, random);
        std::vector<int> lost = {static_cast<int>(random() % 8), static_cast<int>(random() % 8)};
        check_schedule(job, cluster, from, to, lost);
        if (testing::Test::HasFatalFailure()) return;
    }
}

TEST(TransferSchedule, LosingTheOnlyOwnerTakesItsStateFromTheCheckpoint) {
    const Job job = tiny_job(false);
    const Cluster cluster = tiny_cluster(2, 2);
    const Plan from = even_plan(job, layout_of(1, 2, 2));
    Plan to = even_plan(job, layout_of(1, 2, 1));
    to.gpu_of_rank = {1, 3};
    const TransferSchedule one = transfer_schedule(job, cluster, from, to, std::vector<int>{0});
    EXPECT_EQ(one.moved.count(), 0);  // the other replica has everything
    const TransferSchedule both = transfer_schedule(job, cluster, from, to, std::vector<int>{0, 1});
    EXPECT_GT(both.moved.count(), 0);
    EXPECT_EQ(both.moved, both.from_checkpoint);
}

TEST(TransferSchedule, MovesNothingBetweenPlansThatDifferInSharesOrSchedule) {
    const Cluster cluster = tiny_cluster(4, 2);
    std::mt19937_64 random(7);
    for (const Layout& layout : all_layouts(8)) {
        const Job job = tiny_job(random() % 2 == 1);
        const Plan plan = shaken(job, layout, 8, true, random);
        EXPECT_TRUE(transfer_schedule(job, cluster, plan, plan).moves.empty());
        Plan other = plan;
        std::reverse(other.micro_batches_of_replica.begin(), other.micro_batches_of_replica.end());
        other.layout.recompute = Recompute::kFull;
        other.layout.sequence_parallel = true;
        EXPECT_TRUE(transfer_schedule(job, cluster, plan, other).moves.empty()) << text_of(plan);
    }
}

TEST(TransferSchedule, ALayerThatMovesTakesItsOptimizerStateAlongAndNoOther) {
    const Job job = job_of(gpt(8, 64, 4, 32, 512), 1, 64);
    const Cluster cluster = dgx_a100(4);
    for (const bool sharded : {false, true}) {
        Layout layout = layout_of(2, 4, 4);
        layout.distributed_optimizer = sharded;
        const Plan from = plan_of(layout, job, cluster);
        Plan to = from;
        to.layers_of_cell = same_layers({2, 1, 3, 2}, 4);
        const TransferSchedule schedule = transfer_schedule(job, cluster, from, to);
        std::int64_t wanted = 0;
        const LayerParameters layer = layer_parameters(job.model);
        const std::int64_t of_rank = layer.split / 2 + layer.replicated;
        wanted = 8 * of_rank * 2 + (sharded ? 2 : 8) * of_rank * 12;  // 8 ranks of the stage, 4 replicas
        EXPECT_EQ(schedule.moved.count(), wanted);
        for (const Move& move : schedule.moves) EXPECT_EQ(move.block.layer, 3);
    }
}

TEST(TransferSchedule, SpreadsTheLoadOverEquallyNearOwners) {
    // A layer leaves stage 0 in every replica: 8 senders and 8 receivers a tensor rank, all on other nodes.
    const Job job = job_of(gpt(8, 64, 8, 32, 512), 1, 64);
    const Cluster cluster = dgx_a100(16);
    const Plan from = plan_of(layout_of(8, 2, 8), job, cluster);
    Plan to = from;
    to.layers_of_cell = same_layers({3, 5}, 8);
    const TransferSchedule schedule = transfer_schedule(job, cluster, from, to);
    std::int64_t most_out = 0, most_in = 0;
    for (const Traffic& traffic : schedule.by_gpu) {
        most_out = std::max(most_out, traffic.out.count());
        most_in = std::max(most_in, traffic.in.count());
    }
    EXPECT_EQ(most_in, schedule.moved.count() / 64);
    EXPECT_LE(most_out, 2 * schedule.moved.count() / 64);
}

TEST(TransferSchedule, NoSenderHasMoreThanTwiceItsShareWhenReplicasJoin) {
    // Four replicas become eight: every new replica needs all the state of one.
    const Job job = job_of(gpt(8, 64, 8, 32, 512), 1, 64);
    const Cluster cluster = dgx_a100(8);
    const Plan from = plan_of(layout_of(8, 1, 4), job, cluster);
    const Plan to = plan_of(layout_of(8, 1, 8), job, cluster);
    const TransferSchedule schedule = transfer_schedule(job, cluster, from, to);
    for (const Traffic& traffic : schedule.by_gpu) EXPECT_LE(traffic.out.count(), 2 * schedule.moved.count() / 32);
}

TEST(TransferSchedule, RefusesPlansAndGpusThatDoNotBelong) {
    const Job job = tiny_job(false);
    const Cluster cluster = tiny_cluster(2, 2);
    const Plan plan = even_plan(job, layout_of(1, 2, 2));
    Plan broken = plan;
    broken.gpu_of_rank[0] = 4;
    EXPECT_THROW(transfer_schedule(job, cluster, plan, broken), std::invalid_argument);
    EXPECT_THROW(transfer_schedule(job, cluster, broken, plan), std::invalid_argument);
    EXPECT_THROW(transfer_schedule(job, cluster, plan, plan, std::vector<int>{4}), std::invalid_argument);
}

}  // namespace
}  // namespace headway::scenarios
