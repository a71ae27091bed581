#include "backend/checkpoint/write_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

#include "backend/checkpoint/manifest.h"
#include "tests/scenarios/transfer/small_plans.h"

namespace headway::backend {
namespace {

using scenarios::BlockKind;
using scenarios::Interval;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Uncovered, IsWhatNoIntervalHas) {
    EXPECT_THAT(uncovered({0, 10}, {}), ElementsAre(Interval{0, 10}));
    EXPECT_THAT(uncovered({0, 10}, {{0, 10}}), IsEmpty());
    EXPECT_THAT(uncovered({2, 8}, {{0, 10}}), IsEmpty());
    EXPECT_THAT(uncovered({0, 10}, {{0, 3}, {5, 7}}), ElementsAre(Interval{3, 5}, Interval{7, 10}));
    EXPECT_THAT(uncovered({4, 10}, {{0, 5}, {8, 20}}), ElementsAre(Interval{5, 8}));
    EXPECT_THAT(uncovered({4, 4}, {}), IsEmpty());
}

TEST(WriteShares, HaveEveryElementOnceUnderEveryPlan) {
    const scenarios::Job job = scenarios::transfer_test::tiny_job(true);
    std::mt19937_64 random(1);
    for (const scenarios::Layout& layout : scenarios::transfer_test::all_layouts(4)) {
        const scenarios::Plan plan = scenarios::transfer_test::shaken(job, layout, 4, true, random);
        const scenarios::Ownership ownership(job, plan);
        std::vector<std::vector<BlockPart>> owned(4);
        for (int rank = 0; rank < plan.layout.world_size(); ++rank)
            for (const scenarios::Block& block : ownership.blocks()) {
                const Interval part = ownership.owned(rank, block, scenarios::StateKind::kOptimizer);
                if (!part.empty())
                    owned[static_cast<std::size_t>(plan.gpu_of_rank[static_cast<std::size_t>(rank)])].push_back(
                        {block, part});
            }
        std::map<std::pair<BlockKind, int>, std::vector<int>> times;
        for (const scenarios::Block& block : ownership.blocks())
            times[{block.kind, block.layer}].resize(static_cast<std::size_t>(real_elements(job.model, block.kind)));
        for (const auto& share : write_shares(job.model, owned, plan.gpu_of_rank))
            for (const BlockPart& part : share)
                for (std::int64_t i = part.elements.begin; i < part.elements.end; ++i)
                    ++times[{part.block.kind, part.block.layer}].at(static_cast<std::size_t>(i));
        for (const auto& [block, count] : times) EXPECT_EQ(count, std::vector<int>(count.size(), 1));
    }
}

TEST(WriteShares, GiveAnElementToTheFirstThatHasIt) {
    scenarios::Model model = scenarios::transfer_test::tiny_job(true, 1).model;
    std::vector<std::vector<BlockPart>> owned(3);
    for (const scenarios::Block& block : scenarios::blocks_of(model)) {
        owned[1].push_back({block, {0, real_elements(model, block.kind)}});
        owned[2].push_back({block, {0, real_elements(model, block.kind) + 100}});
    }
    owned[0].push_back({{BlockKind::kEmbedding, -1}, {3, 5}});
    const auto shares = write_shares(model, owned, std::vector<int>{0, 2, 1});
    EXPECT_THAT(shares[0], ElementsAre(BlockPart{{BlockKind::kEmbedding, -1}, {3, 5}}));
    EXPECT_THAT(shares[1], IsEmpty());
    ASSERT_GE(shares[2].size(), 2U);
    EXPECT_EQ(shares[2][0].elements, (Interval{0, 3}));
    EXPECT_EQ(shares[2][1].elements, (Interval{5, 40})) << "no padding";
}

TEST(WriteShares, RefuseStateThatIsNotWhole) {
    const scenarios::Model model = scenarios::transfer_test::tiny_job(true, 1).model;
    std::vector<std::vector<BlockPart>> owned(1);
    for (const scenarios::Block& block : scenarios::blocks_of(model))
        if (block.kind != BlockKind::kFinalNorm) owned[0].push_back({block, {0, real_elements(model, block.kind)}});
    EXPECT_THROW(write_shares(model, owned, std::vector<int>{0}), std::invalid_argument);
}

}  // namespace
}  // namespace headway::backend
