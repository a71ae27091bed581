#include "scenarios/costs/parameters.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/scenarios/costs/shipped_job.h"

namespace headway::scenarios {
namespace {

double billions(const std::string& model) {
    return static_cast<double>(model_parameters(read_model(shipped_catalogue(), model))) * 1e-9;
}

TEST(Parameters, OfKnownModelsAreExact) {
    // Counts of the released models.
    EXPECT_EQ(model_parameters(read_model(shipped_catalogue(), "llama3.1-8b")), 8'030'261'248);
    EXPECT_EQ(model_parameters(read_model(shipped_catalogue(), "llama3.1-70b")), 70'553'706'496);
    EXPECT_EQ(model_parameters(read_model(shipped_catalogue(), "llama3.1-405b")), 405'853'388'800);
    EXPECT_EQ(model_parameters(read_model(shipped_catalogue(), "llama2-7b")), 6'738'415'616);
    EXPECT_EQ(model_parameters(read_model(shipped_catalogue(), "gpt2-124m")), 124'439'808);
    EXPECT_NEAR(billions("gpt3-175b"), 174.6, 0.1);
}

TEST(Parameters, FollowNarayanansFormulaWithoutPositions) {
    // Narayanan et al. 2021, equation 2: 12 l h^2 (1 + 13 / 12 h + (V + s) / 12 l h).
    const Model model = gpt(80, 12288, 96);
    const double l = 80, h = 12288, V = 51200, s = 2048;
    const double formula = 12 * l * h * h * (1 + 13 / (12 * h) + (V + s) / (12 * l * h));
    EXPECT_NEAR(static_cast<double>(model_parameters(model)) / formula, 1.0, 1e-6);
}

TEST(Flops, FollowNarayanansFormula) {
    // Equation 3: 96 B s l h^2 (1 + s / 6h + V / 16 l h) with full recomputation.
    const double l = 80, h = 12288, V = 51200, s = 2048, B = 2304;
    const Job job = job_of(gpt(80, 12288, 96), 2, 2304);
    const double formula = 96 * B * s * l * h * h * (1 + s / (6 * h) + V / (16 * l * h));
    EXPECT_NEAR(hardware_flops(job, Recompute::kFull).value / formula, 1.0, 1e-12);
    const double without = 72 * B * s * l * h * h * (1 + s / (6 * h) + V / (12 * l * h));
    EXPECT_NEAR(model_flops(job).value / without, 1.0, 1e-12);
    EXPECT_EQ(hardware_flops(job, Recompute::kNone), model_flops(job));
}

TEST(Flops, SelectiveRecomputationRepeatsOnlyTheScores) {
    const Job job = job_of(gpt(48, 6144, 64), 4, 4);
    const double scores = 4.0 * 2048 * 6144 * (4.0 * 2048) * 48;
    EXPECT_NEAR((hardware_flops(job, Recompute::kSelective) - model_flops(job)).value / scores, 1.0, 1e-12);
}

TEST(RankParameters, OfAllRanksOfAReplicaAddUpToTheModel) {
    Job job = job_of(gpt(12, 1024, 16, 1024, 51200), 1, 8);
    for (const bool tied : {true, false}) {
        job.model.tied_embedding = tied;
        const Layout layout = layout_of(1, 4, 1);
        std::int64_t sum = 0;
        for (int k = 0; k < 4; ++k) sum += rank_parameters(job, layout, k, 3);
        const std::int64_t second_copy = tied ? embedding_parameters(job.model) : 0;
        EXPECT_EQ(sum, model_parameters(job.model) + second_copy);
    }
}

TEST(RankParameters, SplitMatricesAndReplicateNormsOverTensorRanks) {
    const Job job = job_of(gpt(8, 1024, 16, 1024, 51200), 1, 8);
    const LayerParameters layer = layer_parameters(job.model);
    EXPECT_EQ(layer.total(), 12ll * 1024 * 1024 + 13 * 1024);
    const std::int64_t one =
        rank_parameters(job, layout_of(1, 2, 1), 0, 4) - rank_parameters(job, layout_of(1, 2, 1), 0, 3);
    const std::int64_t eight =
        rank_parameters(job, layout_of(8, 2, 1), 0, 4) - rank_parameters(job, layout_of(8, 2, 1), 0, 3);
    EXPECT_EQ(one, layer.total());
    EXPECT_EQ(eight, layer.split / 8 + layer.replicated);
}

TEST(Vocabulary, IsPaddedPerTensorRankUnlessTheStackLeavesItAlone) {
    Job job = job_of(gpt(8, 1024, 16, 1024, 50257), 1, 8);
    EXPECT_EQ(padded_vocabulary(job, layout_of(1, 1, 1)), 50304);
    EXPECT_EQ(padded_vocabulary(job, layout_of(8, 1, 1)), 51200);
    job.stack.pads_vocabulary = false;
    EXPECT_EQ(padded_vocabulary(job, layout_of(1, 1, 1)), 50257);
    EXPECT_EQ(padded_vocabulary(job, layout_of(2, 1, 1)), 50432);
}

}  // namespace
}  // namespace headway::scenarios
