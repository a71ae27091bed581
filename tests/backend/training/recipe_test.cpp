#include "backend/training/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/backend/training/training_case.h"

namespace headway::tests {
namespace {

using backend::DecayRun;
using backend::learning_rate;
using scenarios::BlockKind;
using ::testing::ElementsAre;

scenarios::Training recipe(int warmup, int decay) {
    scenarios::Training training;
    training.learning_rate = 1.0;
    training.final_learning_rate = 0.2;
    training.warmup_iterations = warmup;
    training.decay_iterations = decay;
    return training;
}

TEST(Recipe, WarmsUpLinearly) {
    EXPECT_DOUBLE_EQ(learning_rate(recipe(4, 0), 0), 0.25);
    EXPECT_DOUBLE_EQ(learning_rate(recipe(4, 0), 3), 1.0);
    EXPECT_DOUBLE_EQ(learning_rate(recipe(4, 0), 1000), 1.0);
}

TEST(Recipe, DecaysByACosineToTheFinalRate) {
    EXPECT_DOUBLE_EQ(learning_rate(recipe(10, 110), 10), 1.0);
    EXPECT_DOUBLE_EQ(learning_rate(recipe(10, 110), 60), 0.6);
    EXPECT_DOUBLE_EQ(learning_rate(recipe(10, 110), 110), 0.2);
    EXPECT_DOUBLE_EQ(learning_rate(recipe(10, 110), 5000), 0.2);
    EXPECT_GT(learning_rate(recipe(10, 110), 30), learning_rate(recipe(10, 110), 31));
}

TEST(Recipe, StaysWithoutWarmUpAndDecay) {
    EXPECT_DOUBLE_EQ(learning_rate(recipe(0, 0), 0), 1.0);
    EXPECT_DOUBLE_EQ(learning_rate(recipe(0, 0), 99), 1.0);
}

TEST(Recipe, HasTheFinalRateWhereDecayEndsDuringWarmUp) {
    EXPECT_DOUBLE_EQ(learning_rate(recipe(10, 5), 7), 0.8);
    EXPECT_DOUBLE_EQ(learning_rate(recipe(10, 5), 10), 0.2);
}

TEST(Recipe, ClipsOnlyWhatIsTooLarge) {
    EXPECT_DOUBLE_EQ(backend::clipping_scale(1.0, 4.0), 0.25);
    EXPECT_DOUBLE_EQ(backend::clipping_scale(1.0, 0.5), 1.0);
    EXPECT_DOUBLE_EQ(backend::clipping_scale(0.0, 100.0), 1.0);
}

TEST(Recipe, DecaysMatricesButNotBiasesOfALayer) {
    // 4 units; each: query 4 x 16 and bias 4, key and value the same, projection 4 x 16, input 8 x 16 and bias 8,
    // output 8 x 16.
    const scenarios::Job job = gpt2_in_small();
    const auto runs = backend::decay_runs(job.model, BlockKind::kLayerSplit, {536, 536 + 80});
    EXPECT_EQ(scenarios::block_elements(job, {}, BlockKind::kLayerSplit), 4 * 532);
    // From element 4 of the second unit: the rest of its query weight, query bias, key weight's first 16.
    EXPECT_THAT(runs, ElementsAre(DecayRun{{536, 596}, true}, DecayRun{{596, 600}, false}, DecayRun{{600, 616}, true}));
}

TEST(Recipe, JoinsMatricesWithoutBiases) {
    const scenarios::Job job = llama_in_small();
    const std::int64_t all = scenarios::block_elements(job, {}, BlockKind::kLayerSplit);
    EXPECT_THAT(backend::decay_runs(job.model, BlockKind::kLayerSplit, {0, all}),
                ElementsAre(DecayRun{{0, all}, true}));
}

TEST(Recipe, DecaysEmbeddingsButNotNorms) {
    const scenarios::Model model = gpt2_in_small().model;
    for (const BlockKind kind : {BlockKind::kEmbedding, BlockKind::kPositions, BlockKind::kHead})
        EXPECT_THAT(backend::decay_runs(model, kind, {3, 9}), ElementsAre(DecayRun{{3, 9}, true}));
    for (const BlockKind kind : {BlockKind::kLayerReplicated, BlockKind::kFinalNorm})
        EXPECT_THAT(backend::decay_runs(model, kind, {3, 9}), ElementsAre(DecayRun{{3, 9}, false}));
    EXPECT_TRUE(backend::decay_runs(model, BlockKind::kFinalNorm, {}).empty());
}

}  // namespace
}  // namespace headway::tests
