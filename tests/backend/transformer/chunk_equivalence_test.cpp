#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "backend/host/host_device.h"
#include "tests/backend/local_ranks.h"
#include "tests/backend/transformer/chunk_run.h"

namespace headway::backend {
namespace {

using scenarios::BlockKind;
using scenarios::Layout;
using scenarios::Model;
using scenarios::Recompute;

/// Largest difference of losses and gradients, over the largest gradient.
double difference(const RunResult& a, const RunResult& b) {
    double largest = 0.0, apart = 0.0;
    for (const auto& [block, values] : a.gradients) {
        const std::vector<double>& others = b.gradients.at(block);
        if (values.size() != others.size()) throw std::logic_error("blocks of different sizes");
        for (std::size_t i = 0; i < values.size(); ++i) {
            largest = std::max(largest, std::abs(values[i]));
            apart = std::max(apart, std::abs(values[i] - others[i]));
        }
    }
    if (a.gradients.size() != b.gradients.size() || largest == 0.0) throw std::logic_error("nothing to compare");
    return std::max(apart / largest, std::abs(a.loss / b.loss - 1.0));
}

RunResult run_alone(const RunSetup& setup) {
    const auto device = make_host_device(DataType::kFloat64);
    ChunkRun run(*device, setup);
    run.set_weights(strong_weights(setup.model, setup.padded(), 3));
    return run.run(random_tokens(setup, 4));
}

/// The same over as many processes as the layout has tensor ranks; their gradients put together.
RunResult run_split(const RunSetup& setup) {
    const int ranks = setup.layout.tensor;
    const auto results = run_ranks(ranks, [&](LocalRank& local) {
        const auto device = make_host_device(DataType::kFloat64);
        GroupSpec group{"tensor", {}};
        for (int rank = 0; rank < ranks; ++rank) group.members.push_back(rank);
        const auto communicators = local.communicators.make({group});
        ChunkRun run(*device, setup, local.rank, communicators[0].get());
        run.set_weights(strong_weights(setup.model, setup.padded(), 3));
        const RunResult result = run.run(random_tokens(setup, 4));
        EXPECT_GT(run.chunk(0).take_exposed_communication().ns(), 0);
        EXPECT_EQ(run.chunk(0).take_exposed_communication().ns(), 0);
        return result.bytes();
    });
    RunResult whole = RunResult::from_bytes(results[0]);
    for (int rank = 1; rank < ranks; ++rank) {
        const RunResult part = RunResult::from_bytes(results[static_cast<std::size_t>(rank)]);
        EXPECT_EQ(part.loss, whole.loss) << "rank " << rank;
        for (const auto& [block, values] : part.gradients) {
            std::vector<double>& sum = whole.gradients.at(block);
            if (scenarios::is_split(block.first)) {
                sum.insert(sum.end(), values.begin(), values.end());
            } else if (setup.layout.sequence_parallel) {  // shares, which the trainer adds up
                std::transform(sum.begin(), sum.end(), values.begin(), sum.begin(), std::plus<>());
            } else {
                EXPECT_EQ(values, sum) << "rank " << rank << ", block " << static_cast<int>(block.first);
            }
        }
    }
    return whole;
}

std::vector<RunSetup> both_families() {
    std::vector<RunSetup> setups(2);
    setups[0].model = small_gpt2();
    setups[1].model = small_llama();
    for (RunSetup& setup : setups) setup.micro_batches = 2;
    return setups;
}

TEST(ChunkEquivalence, RecomputationChangesNoBit) {
    for (RunSetup setup : both_families()) {
        const RunResult plain = run_alone(setup);
        for (const Recompute recompute : {Recompute::kSelective, Recompute::kFull}) {
            setup.layout.recompute = recompute;
            EXPECT_EQ(run_alone(setup).bytes(), plain.bytes());
        }
    }
}

TEST(ChunkEquivalence, TheHalvesOfBackwardAreTheWhole) {
    for (RunSetup setup : both_families()) {
        for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
            setup.layout.recompute = recompute;
            setup.split_backward = false;
            const RunResult whole = run_alone(setup);
            setup.split_backward = true;
            EXPECT_LT(difference(run_alone(setup), whole), 1e-14);
        }
    }
}

TEST(ChunkEquivalence, AChainOfChunksIsOneChunk) {
    for (RunSetup setup : both_families()) {
        const RunResult one = run_alone(setup);
        for (const std::vector<int>& chain : {std::vector<int>{1, 1}, {0, 1, 1, 0}, {2, 0}, {0, 0, 2}}) {
            setup.layers_of_chunk = chain;
            EXPECT_LT(difference(run_alone(setup), one), 1e-14);
        }
    }
}

TEST(ChunkEquivalence, PaddingOfTheVocabularyTakesNoPart) {
    for (RunSetup setup : both_families()) {
        const RunResult exact = run_alone(setup);
        setup.padded_vocab = 32;
        RunResult padded = run_alone(setup);
        for (const BlockKind kind : {BlockKind::kEmbedding, BlockKind::kHead}) {
            const auto found = padded.gradients.find({kind, -1});
            if (found == padded.gradients.end()) continue;
            const auto end_of_tokens = found->second.begin() + setup.model.vocab * setup.model.hidden;
            EXPECT_TRUE(std::all_of(end_of_tokens, found->second.end(), [](double value) { return value == 0.0; }));
            found->second.erase(end_of_tokens, found->second.end());
        }
        EXPECT_LT(difference(padded, exact), 1e-14);
    }
}

struct Split {
    std::string name;
    Layout layout;
    bool split_backward = false;
};

class TensorParallelChunk : public ::testing::TestWithParam<Split> {};

TEST_P(TensorParallelChunk, IsTheChunkOfOneRank) {
    for (RunSetup setup : both_families()) {
        const int ranks = GetParam().layout.tensor;
        setup.model.kv_heads = std::max(setup.model.kv_heads, ranks);
        setup.padded_vocab = 32;  // with 4 ranks of 8 rows the last two have no token, or only padding
        setup.layers_of_chunk = {1, 1};
        const RunResult alone = run_alone(setup);
        setup.layout = GetParam().layout;
        setup.split_backward = GetParam().split_backward;
        EXPECT_LT(difference(run_split(setup), alone), 1e-10);
    }
}

Layout tensor_layout(int ranks, bool sequence_parallel, Recompute recompute, bool overlap) {
    Layout layout;
    layout.tensor = ranks;
    layout.sequence_parallel = sequence_parallel;
    layout.recompute = recompute;
    layout.overlap_tensor_comm = overlap;
    return layout;
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, TensorParallelChunk,
    ::testing::Values(Split{"Two", tensor_layout(2, false, Recompute::kNone, false)},
                      Split{"TwoOverlapping", tensor_layout(2, false, Recompute::kSelective, true)},
                      Split{"TwoSequenceParallel", tensor_layout(2, true, Recompute::kNone, false)},
                      Split{"TwoSequenceParallelOverlapping", tensor_layout(2, true, Recompute::kFull, true)},
                      Split{"TwoSequenceParallelInHalves", tensor_layout(2, true, Recompute::kNone, true), true},
                      Split{"Four", tensor_layout(4, false, Recompute::kFull, false)},
                      Split{"FourInHalves", tensor_layout(4, false, Recompute::kNone, false), true},
                      Split{"FourSequenceParallel", tensor_layout(4, true, Recompute::kSelective, false)}),
    [](const auto& split) { return split.param.name; });

}  // namespace
}  // namespace headway::backend
