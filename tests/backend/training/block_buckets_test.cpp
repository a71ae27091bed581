#include "backend/training/block_buckets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/backend/training/training_case.h"

namespace headway::tests {
namespace {

using backend::BucketCandidate;
using scenarios::BlockKind;
using ::testing::ElementsAre;

TEST(BlockBuckets, JoinNeighboursThatTheSameVirtualStagesHold) {
    const std::vector<BucketCandidate> blocks{{{0, 0}, false, 10}, {{0, 0}, false, 10}, {{1, 0}, false, 10},
                                              {{1, 1}, false, 10}, {{1, 1}, false, 10}, {{1, 1}, false, 10}};
    EXPECT_THAT(backend::bucket_starts(blocks, 1000), ElementsAre(0, 2, 3));
}

TEST(BlockBuckets, LeaveATiedEmbeddingAlone) {
    const std::vector<BucketCandidate> blocks{{{0}, true, 10}, {{0}, false, 10}, {{0}, false, 10}, {{0}, true, 10}};
    EXPECT_THAT(backend::bucket_starts(blocks, 1000), ElementsAre(0, 1, 3));
}

TEST(BlockBuckets, EndWhereTheyAreFull) {
    const std::vector<BucketCandidate> blocks{{{0}, false, 10}, {{0}, false, 10}, {{0}, false, 30}, {{0}, false, 5}};
    EXPECT_THAT(backend::bucket_starts(blocks, 20), ElementsAre(0, 2, 3));
    EXPECT_THAT(backend::bucket_starts(blocks, 1), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(backend::bucket_starts({}, 20), ElementsAre());
}

TEST(BlockBuckets, KnowTheVirtualStageOfEveryReplica) {
    scenarios::Layout layout;
    layout.pipeline = layout.virtual_pipeline = layout.data = 2;
    layout.schedule = scenarios::Schedule::kInterleaved;
    scenarios::Plan plan = even_plan(gpt2_in_small(), layout);
    plan.layers_of_cell = {2, 0, 1, 1, 0, 1, 2, 1};
    EXPECT_THAT(backend::virtual_stages_of(plan, {BlockKind::kEmbedding, -1}), ElementsAre(0, 0));
    EXPECT_THAT(backend::virtual_stages_of(plan, {BlockKind::kLayerSplit, 0}), ElementsAre(0, 1));
    EXPECT_THAT(backend::virtual_stages_of(plan, {BlockKind::kLayerSplit, 1}), ElementsAre(0, 2));
    EXPECT_THAT(backend::virtual_stages_of(plan, {BlockKind::kLayerReplicated, 2}), ElementsAre(2, 2));
    EXPECT_THAT(backend::virtual_stages_of(plan, {BlockKind::kLayerReplicated, 3}), ElementsAre(3, 3));
    EXPECT_THAT(backend::virtual_stages_of(plan, {BlockKind::kFinalNorm, -1}), ElementsAre(3, 3));
}

}  // namespace
}  // namespace headway::tests
