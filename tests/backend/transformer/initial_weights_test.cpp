#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "backend/transformer/block_order.h"
#include "backend/transformer/chunk.h"
#include "scenarios/costs/parameters.h"
#include "tests/backend/transformer/chunk_run.h"

namespace headway::backend {
namespace {

using scenarios::Block;
using scenarios::BlockKind;
using scenarios::Interval;
using scenarios::Job;

Job job_of(const scenarios::Model& model) {
    Job job;
    job.model = model;
    return job;
}

Job wider_job() {
    Job job = job_of(small_gpt2());
    job.model.hidden = 128;
    job.model.head_dim = 32;
    job.model.ffn = 512;
    job.model.vocab = 300;
    return job;
}

std::vector<float> whole(const Job& job, const Block& block, std::uint64_t seed = 1) {
    return initial_weights(job, block, {0, scenarios::block_elements(job, {}, block.kind)}, seed);
}

TEST(InitialWeights, AreTheSameHoweverABlockIsCut) {
    const Job job = wider_job();
    for (const Block& block : scenarios::blocks_of(job.model)) {
        const std::vector<float> all = whole(job, block);
        const auto elements = static_cast<std::int64_t>(all.size());
        for (const std::int64_t parts : {2, 3, 7}) {
            std::vector<float> joined;
            for (std::int64_t i = 0; i < parts; ++i) {
                const std::vector<float> part =
                    initial_weights(job, block, scenarios::part_of({0, elements}, i, parts), 1);
                joined.insert(joined.end(), part.begin(), part.end());
            }
            EXPECT_EQ(joined, all);
        }
    }
    EXPECT_TRUE(initial_weights(job, {BlockKind::kEmbedding, -1}, {5, 5}, 1).empty());
}

TEST(InitialWeights, DifferByBlockAndSeed) {
    const Job job = wider_job();
    const Block first{BlockKind::kLayerSplit, 0}, second{BlockKind::kLayerSplit, 1};
    EXPECT_NE(whole(job, first), whole(job, second));
    EXPECT_NE(whole(job, first), whole(job, first, 2));
}

TEST(InitialWeights, FollowTheLawOfTheirTensor) {
    const Job job = wider_job();
    const Block block{BlockKind::kLayerSplit, 1};
    const std::vector<float> values = whole(job, block);
    const BlockTensors unit = block_tensors(job.model, block.kind);
    for (const BlockTensor& tensor : unit.tensors) {
        double sum = 0.0, squares = 0.0;
        std::int64_t count = 0;
        for (std::int64_t start = 0; start < static_cast<std::int64_t>(values.size()); start += unit.period)
            for (std::int64_t i = 0; i < tensor.elements; ++i, ++count) {
                const double value = values[static_cast<std::size_t>(start + tensor.first + i)];
                sum += value;
                squares += value * value;
            }
        const std::string name = tensor.name;
        const bool into_residual = name == "projection weight" || name == "mlp output weight";
        const double deviation = !tensor.matrix ? 0.0 : into_residual ? 0.01 : 0.02;  // 2 layers: 0.02 / sqrt(4)
        EXPECT_NEAR(sum / static_cast<double>(count), 0.0, 4 * deviation / std::sqrt(count)) << name;
        EXPECT_NEAR(std::sqrt(squares / static_cast<double>(count)), deviation, 0.03 * deviation) << name;
    }
}

TEST(InitialWeights, OfNormsAreOneAndOfBiasesZero) {
    const int hidden = 16;
    const auto expect_vectors = [&](const std::vector<float>& values, const std::vector<float>& expected) {
        ASSERT_EQ(values.size(), expected.size() * hidden);
        for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], expected[i / hidden]);
    };
    expect_vectors(whole(job_of(small_gpt2()), {BlockKind::kLayerReplicated, 0}), {1, 0, 0, 1, 0, 0});
    expect_vectors(whole(job_of(small_llama()), {BlockKind::kLayerReplicated, 0}), {1, 1});
    expect_vectors(whole(job_of(small_gpt2()), {BlockKind::kFinalNorm, -1}), {1, 0});
}

TEST(InitialWeights, OfPaddingRowsAreZero) {
    const Job job = job_of(small_llama());
    const std::int64_t tokens = std::int64_t{job.model.vocab} * job.model.hidden;
    for (const BlockKind kind : {BlockKind::kEmbedding, BlockKind::kHead}) {
        const std::vector<float> values = initial_weights(job, {kind, -1}, {tokens - 5, tokens + 20}, 1);
        ASSERT_EQ(values.size(), 25u);
        for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i] == 0.0f, i >= 5);
        EXPECT_EQ(initial_weights(job, {kind, -1}, {tokens + 3, tokens + 6}, 1), std::vector<float>(3, 0.0f));
    }
}

}  // namespace
}  // namespace headway::backend
