#include "scenarios/transfer/difference.h"

#include <gtest/gtest.h>

#include <random>

#include "scenarios/transfer/transfer_schedule.h"
#include "tests/scenarios/costs/shipped_job.h"
#include "tests/scenarios/transfer/small_plans.h"

namespace headway::scenarios {
namespace {

using transfer_test::even_plan;
using transfer_test::text_of;

Job large_job() {
    return job_of(read_model(shipped_catalogue(), "gpt3-175b"), 1, 1536);
}

/// GPT-3 on 256 GPUs, with a distributed optimizer; `seed` moves layers about, replica by replica, and swaps nodes.
Plan large_plan(const Job& job, int tensor, int pipeline, std::uint64_t seed) {
    Layout layout = layout_of(tensor, pipeline, 256 / tensor / pipeline);
    layout.distributed_optimizer = true;
    Plan plan = even_plan(job, layout);
    if (seed == 0) return plan;
    std::mt19937_64 random(seed);
    for (int i = 0; i < 10; ++i) {
        const auto replica = static_cast<int>(random() % static_cast<std::uint64_t>(layout.data));
        const auto stage = static_cast<int>(random() % static_cast<std::uint64_t>(pipeline - 1));
        int* cells = &plan.layers_of_cell[static_cast<std::size_t>(replica * pipeline + stage)];
        --cells[0];
        ++cells[1];
    }
    for (int i = 0; i < 5; ++i) {
        const auto a = static_cast<std::ptrdiff_t>(8 * (random() % 32)),
                   b = static_cast<std::ptrdiff_t>(8 * (random() % 32));
        if (a != b)
            std::swap_ranges(plan.gpu_of_rank.begin() + a, plan.gpu_of_rank.begin() + a + 8,
                             plan.gpu_of_rank.begin() + b);
    }
    return plan;
}

std::vector<std::pair<Plan, Plan>> large_switches(const Job& job) {
    const Plan even = large_plan(job, 8, 16, 0);
    return {{even, large_plan(job, 8, 16, 1)}, {large_plan(job, 8, 16, 1), large_plan(job, 8, 16, 2)},
            {even, large_plan(job, 8, 8, 0)},  {large_plan(job, 8, 16, 3), large_plan(job, 8, 8, 4)},
            {even, large_plan(job, 4, 16, 0)}, {large_plan(job, 4, 8, 5), large_plan(job, 8, 32, 6)}};
}

TEST(Difference, FoldedTensorGroupsLoadLinksAsTheListOfMovesDoes) {
    const Job job = large_job();
    const Cluster cluster = dgx_a100(32);
    const LinkMap map(cluster);
    for (const auto& [from, to] : large_switches(job)) {
        const PlacedPlan was(job, map, from), is(job, map, to);
        LinkLoads folded(map), listed(map);
        std::vector<Move> moves;
        Difference(map, was, is).walk(folded);
        Difference(map, was, is).walk(listed, &moves);
        EXPECT_EQ(folded.moved(), listed.moved()) << text_of(from) << " to " << text_of(to);
        EXPECT_NEAR(folded.seconds(1, 1) / listed.seconds(1, 1), 1.0, 0.1) << text_of(from) << " to " << text_of(to);
        EXPECT_NEAR(folded.seconds(0, 1) / listed.seconds(0, 1), 1.0, 0.1);
    }
}

/// Bytes of `kind` that a rank owns under the new plan and its GPU did not own under the old one.
std::int64_t lacking(const Ownership& before, int rank_was, const Ownership& after, int rank_is, StateKind kind) {
    std::int64_t elements = 0;
    for (const Block& block : after.blocks()) {
        Interval needed = after.owned(rank_is, block, kind);
        needed.end = std::min(needed.end, before.elements(block.kind));
        if (needed.empty()) continue;
        const Interval has = rank_was < 0 ? Interval{} : before.owned(rank_was, block, kind);
        const std::int64_t kept = std::min(has.end, needed.end) - std::max(has.begin, needed.begin);
        elements += needed.size() - std::max<std::int64_t>(0, kept);
    }
    return elements * bytes_of_element(kind, large_job().precision);
}

TEST(Difference, EveryGpuOfALargeJobReceivesWhatItLacks) {
    const Job job = large_job();
    const Cluster cluster = dgx_a100(32);
    for (const auto& [from, to] : large_switches(job)) {
        const Ownership before(job, from), after(job, to);
        std::vector<int> rank_was(256, -1);
        for (int rank = 0; rank < 256; ++rank)
            rank_was[static_cast<std::size_t>(from.gpu_of_rank[static_cast<std::size_t>(rank)])] = rank;
        const TransferSchedule schedule = transfer_schedule(job, cluster, from, to);
        for (int rank = 0; rank < 256; ++rank) {
            const auto gpu = static_cast<std::size_t>(to.gpu_of_rank[static_cast<std::size_t>(rank)]);
            EXPECT_EQ(schedule.by_gpu[gpu].in.count(),
                      lacking(before, rank_was[gpu], after, rank, StateKind::kWeights) +
                          lacking(before, rank_was[gpu], after, rank, StateKind::kOptimizer))
                << text_of(from) << " to " << text_of(to) << " GPU " << gpu;
        }
    }
}

TEST(Difference, SendersOfALargeJobShareTheLoad) {
    // The busiest sender has at most twice what the busiest receiver takes, or twice an even share.
    const Job job = large_job();
    const Cluster cluster = dgx_a100(32);
    const Plan from = large_plan(job, 8, 16, 0);
    for (const Plan& to : {large_plan(job, 8, 8, 0), large_plan(job, 4, 16, 0)}) {
        const TransferSchedule schedule = transfer_schedule(job, cluster, from, to);
        std::int64_t most_in = 0, most_out = 0;
        for (const Traffic& traffic : schedule.by_gpu) {
            most_in = std::max(most_in, traffic.in.count());
            most_out = std::max(most_out, traffic.out.count());
        }
        EXPECT_LE(most_out, 2 * std::max(most_in, schedule.moved.count() / 256)) << text_of(to);
    }
}

}  // namespace
}  // namespace headway::scenarios
