#include "backend/transformer/chunk_weights.h"

#include <stdexcept>

#include "scenarios/costs/parameters.h"

namespace headway::backend {

namespace {
using scenarios::BlockKind;

constexpr std::int64_t kGradientAlignment = 64;  // elements: 256 bytes of float32, as memory is aligned
}  // namespace

ChunkWeights::ChunkWeights(Device& device, const ChunkShape& shape)
    : model_(shape.model), tensor_degree_(shape.layout.tensor), padded_vocab_(shape.padded_vocab) {
    const bool tied = model_.tied_embedding;
    if (shape.embeds || (shape.has_head && tied)) add(device, BlockKind::kEmbedding);
    if (shape.embeds && scenarios::position_parameters(model_) > 0) add(device, BlockKind::kPositions);
    for (int layer = shape.first_layer; layer < shape.first_layer + shape.layers; ++layer) {
        add(device, BlockKind::kLayerSplit, layer);
        add(device, BlockKind::kLayerReplicated, layer);
    }
    if (shape.has_head) add(device, BlockKind::kFinalNorm);
    if (shape.has_head && !tied) add(device, BlockKind::kHead);
    allocate_gradients(device);
}

std::int64_t ChunkWeights::elements(BlockKind kind) const {
    switch (kind) {
        case BlockKind::kEmbedding:
        case BlockKind::kHead:
            return padded_vocab_ / tensor_degree_ * model_.hidden;
        case BlockKind::kPositions:
            return scenarios::position_parameters(model_);
        case BlockKind::kLayerSplit:
            return scenarios::layer_parameters(model_).split / tensor_degree_;
        case BlockKind::kLayerReplicated:
            return scenarios::layer_parameters(model_).replicated;
        case BlockKind::kFinalNorm:
            return scenarios::final_norm_parameters(model_);
    }
    throw std::invalid_argument("not a block");
}

void ChunkWeights::add(Device& device, BlockKind kind, int layer) {
    const Tensor weights = memory_.emplace_back(device, device.working_type(), 1, elements(kind)).tensor;
    blocks_.push_back({{kind, layer}, weights, {}});
}

void ChunkWeights::allocate_gradients(Device& device) {
    const auto aligned = [](std::int64_t count) {
        return (count + kGradientAlignment - 1) / kGradientAlignment * kGradientAlignment;
    };
    std::int64_t count = 0;
    for (const BlockWeights& block : blocks_) count += aligned(block.weights.count());
    if (count == 0) return;
    gradients_ = OwnedTensor(device, device.accumulation_type(), 1, count);
    device.operations().fill(gradients_.tensor, 0.0);
    std::int64_t at = 0;
    for (BlockWeights& block : blocks_) {
        block.gradients = gradients_.tensor.elements(at, block.weights.count());
        at += aligned(block.weights.count());
    }
}

const BlockWeights* ChunkWeights::find(BlockKind kind, int layer) const {
    for (const BlockWeights& block : blocks_)
        if (block.block == scenarios::Block{kind, layer}) return &block;
    return nullptr;
}

}  // namespace headway::backend
