#include "backend/transformer/chunk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "backend/host/host_device.h"
#include "backend/transformer/owned_tensor.h"
#include "tests/backend/transformer/chunk_run.h"

namespace headway::backend {
namespace {

using scenarios::Block;
using scenarios::BlockKind;
using scenarios::Recompute;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

ChunkShape shape_of(const scenarios::Model& model) {
    ChunkShape shape;
    shape.model = model;
    shape.layers = model.layers;
    shape.embeds = shape.has_head = true;
    shape.padded_vocab = model.vocab;
    return shape;
}

std::vector<Block> blocks_of_chunk(Device& device, ChunkShape shape, bool embeds, bool has_head) {
    shape.embeds = embeds;
    shape.has_head = has_head;
    shape.first_layer = 1;
    shape.layers = 1;
    std::vector<Block> blocks;
    const Chunk chunk(device, shape, nullptr);
    for (const BlockWeights& held : chunk.blocks()) blocks.push_back(held.block);
    return blocks;
}

TEST(Chunk, HoldsItsBlocksInModelOrder) {
    const auto device = make_host_device();
    const Block embedding{BlockKind::kEmbedding, -1}, positions{BlockKind::kPositions, -1},
        split{BlockKind::kLayerSplit, 1}, replicated{BlockKind::kLayerReplicated, 1}, norm{BlockKind::kFinalNorm, -1},
        head{BlockKind::kHead, -1};
    const ChunkShape gpt2 = shape_of(small_gpt2()), llama = shape_of(small_llama());
    EXPECT_THAT(blocks_of_chunk(*device, gpt2, true, false), ElementsAre(embedding, positions, split, replicated));
    EXPECT_THAT(blocks_of_chunk(*device, gpt2, false, false), ElementsAre(split, replicated));
    EXPECT_THAT(blocks_of_chunk(*device, gpt2, false, true), ElementsAre(embedding, split, replicated, norm));
    EXPECT_THAT(blocks_of_chunk(*device, gpt2, true, true), ElementsAre(embedding, positions, split, replicated, norm));
    EXPECT_THAT(blocks_of_chunk(*device, llama, false, true), ElementsAre(split, replicated, norm, head));
}

void expect_refused(const ChunkShape& shape, const char* why) {
    const auto device = make_host_device();
    EXPECT_THAT([&] { Chunk(*device, shape, nullptr); }, ThrowsMessage<std::invalid_argument>(HasSubstr(why)));
}

TEST(Chunk, RefusesModelsAndLayoutsThatItCannotTrain) {
    ChunkShape shape = shape_of(small_gpt2());
    shape.model.positions = scenarios::Positions::kAlibi;
    expect_refused(shape, "ALiBi");
    shape = shape_of(small_gpt2());
    shape.layout.context = 2;
    expect_refused(shape, "context");
    shape = shape_of(small_gpt2());
    shape.layout.tensor = 3;
    expect_refused(shape, "model.heads: 4 cannot be split over 3 tensor ranks");
    shape = shape_of(small_llama());
    shape.layout.tensor = 4;
    expect_refused(shape, "model.kv_heads: 2");
    shape = shape_of(small_gpt2());
    shape.layout.tensor = 2;
    shape.padded_vocab = 16;
    expect_refused(shape, "communicator");
    shape.layout.tensor = 4;
    shape.layout.sequence_parallel = true;
    expect_refused(shape, "tokens of a micro-batch: 6");
    shape = shape_of(small_llama());
    shape.model.head_dim = 5;
    expect_refused(shape, "even head_dim");
}

TEST(Chunk, RefusesStepsOutOfOrderAndTensorsOfOtherShapes) {
    const auto device = make_host_device();
    Chunk chunk(*device, shape_of(small_gpt2()), nullptr);
    const OwnedTensor tokens(*device, DataType::kInt32, 1, 6);
    device->operations().fill(tokens.tensor, 1);
    for (const BlockWeights& held : chunk.blocks()) device->operations().fill(held.weights, 0.1);
    const auto refused = [](const auto& call, const char* why) {
        EXPECT_THAT(call, ThrowsMessage<std::invalid_argument>(HasSubstr(why)));
    };
    refused([&] { chunk.backward(0, {}, {}); }, "micro-batch 0");
    refused([&] { chunk.forward(0, tokens.tensor, {}, 1.0, {}); }, "targets");
    refused([&] { chunk.forward(0, tokens.tensor.column_range(0, 5), tokens.tensor, 1.0, {}); }, "1 x 5, not 1 x 6");
    chunk.forward(0, tokens.tensor, tokens.tensor, 1.0, {});
    refused([&] { chunk.forward(0, tokens.tensor, tokens.tensor, 1.0, {}); }, "in flight");
    refused([&] { chunk.backward_weight(0); }, "micro-batch 0");
    chunk.backward_input(0, {}, {});
    refused([&] { chunk.backward(0, {}, {}); }, "micro-batch 0");
    chunk.backward_weight(0);
    refused([&] { chunk.backward_weight(0); }, "micro-batch 0");
}

TEST(Chunk, TakesTheLossOnceAndOnlyWhereItIs) {
    const auto device = make_host_device(DataType::kFloat64);
    RunSetup setup;
    setup.model = small_gpt2();
    setup.layers_of_chunk = {1, 1};
    ChunkRun run(*device, setup);
    run.set_weights(strong_weights(setup.model, setup.padded(), 1));
    EXPECT_GT(run.run(random_tokens(setup, 1)).loss, 0.0);
    EXPECT_EQ(run.chunk(1).take_loss(), 0.0);
    EXPECT_THROW(run.chunk(0).take_loss(), std::logic_error);
}

/// Bytes that a micro-batch holds between its forward and its backward.
std::int64_t bytes_in_flight(Recompute recompute, bool after_first_half) {
    const auto device = make_host_device();
    ChunkShape shape = shape_of(small_gpt2());
    shape.layout.recompute = recompute;
    shape.embeds = shape.has_head = false;
    Chunk chunk(*device, shape, nullptr);
    for (const BlockWeights& held : chunk.blocks()) device->operations().fill(held.weights, 0.1);
    const OwnedTensor flow(*device, DataType::kFloat32, 6, 16), gradient(*device, DataType::kFloat32, 6, 16);
    device->operations().fill(flow.tensor, 0.5);
    const std::int64_t before = device->memory_used().count();
    std::int64_t held = 0;
    for (int m = 0; m < 3; ++m) {
        chunk.forward(m, flow.tensor, {}, 1.0, gradient.tensor);
        const std::int64_t now = device->memory_used().count() - before;
        EXPECT_EQ(now, (m + 1) * (m == 0 ? now : held));
        if (m == 0) held = now;
    }
    for (int m = 0; m < 3; ++m) {
        if (after_first_half) {
            chunk.backward_input(m, flow.tensor, gradient.tensor);
        } else {
            chunk.backward(m, flow.tensor, gradient.tensor);
        }
    }
    if (after_first_half) {
        EXPECT_GT(device->memory_used().count(), before);
        for (int m = 0; m < 3; ++m) chunk.backward_weight(m);
    }
    EXPECT_EQ(device->memory_used().count(), before);
    return held;
}

TEST(Chunk, KeepsLessTheMoreItRecomputesAndNothingAfterwards) {
    for (const bool in_halves : {false, true}) {
        const std::int64_t none = bytes_in_flight(Recompute::kNone, in_halves);
        const std::int64_t selective = bytes_in_flight(Recompute::kSelective, in_halves);
        const std::int64_t full = bytes_in_flight(Recompute::kFull, in_halves);
        EXPECT_LT(selective, none);
        EXPECT_LT(full, selective / 4);
        EXPECT_GT(full, 0);
    }
}

}  // namespace
}  // namespace headway::backend
