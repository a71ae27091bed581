#include "scenarios/transfer/ownership.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <string>

#include "scenarios/costs/parameters.h"

namespace headway::scenarios {

std::vector<Block> blocks_of(const Model& model) {
    std::vector<Block> blocks{{BlockKind::kEmbedding, -1}};
    if (position_parameters(model) > 0) blocks.push_back({BlockKind::kPositions, -1});
    for (int layer = 0; layer < model.layers; ++layer) {
        blocks.push_back({BlockKind::kLayerSplit, layer});
        blocks.push_back({BlockKind::kLayerReplicated, layer});
    }
    blocks.push_back({BlockKind::kFinalNorm, -1});
    if (!model.tied_embedding) blocks.push_back({BlockKind::kHead, -1});
    return blocks;
}

std::int64_t block_elements(const Job& job, const Layout& layout, BlockKind kind) {
    switch (kind) {
        case BlockKind::kEmbedding:
        case BlockKind::kHead:
            return padded_vocabulary(job, layout) * job.model.hidden;
        case BlockKind::kPositions:
            return position_parameters(job.model);
        case BlockKind::kLayerSplit:
            return layer_parameters(job.model).split;
        case BlockKind::kLayerReplicated:
            return layer_parameters(job.model).replicated;
        case BlockKind::kFinalNorm:
            return final_norm_parameters(job.model);
    }
    throw std::invalid_argument("not a block");
}

int split_units(const Model& model) {
    return std::gcd(std::gcd(model.heads, model.kv_heads), model.ffn);
}

std::vector<SplitTensor> split_tensors(const Model& model) {
    const std::int64_t units = split_units(model), head = head_dim_of(model);
    const std::int64_t queries = model.heads / units * head, keys = model.kv_heads / units * head;
    const std::int64_t inner = model.ffn / units;
    std::vector<SplitTensor> tensors;
    const auto add = [&](const char* name, std::int64_t rows) { tensors.push_back({name, rows, model.hidden}); };
    const auto add_bias = [&](const char* name, std::int64_t rows) {
        if (model.biases) tensors.push_back({name, rows, 1});
    };
    add("query weight", queries);
    add_bias("query bias", queries);
    add("key weight", keys);
    add_bias("key bias", keys);
    add("value weight", keys);
    add_bias("value bias", keys);
    add("projection weight", queries);
    if (model.gated_mlp) {
        add("gate weight", inner);
        add_bias("gate bias", inner);
    }
    add("mlp input weight", inner);
    add_bias("mlp input bias", inner);
    add("mlp output weight", inner);
    return tensors;
}

Interval part_of(const Interval& whole, std::int64_t index, std::int64_t parts) {
    const std::int64_t each = (whole.size() + parts - 1) / parts;
    return {std::min(whole.begin + index * each, whole.end), std::min(whole.begin + (index + 1) * each, whole.end)};
}

std::vector<int> stages_of_edge_block(const Model& model, const Layout& layout, BlockKind kind) {
    const int last = layout.pipeline - 1;
    switch (kind) {
        case BlockKind::kEmbedding:
            if (model.tied_embedding && last > 0) return {0, last};
            return {0};
        case BlockKind::kPositions:
            return {0};
        case BlockKind::kFinalNorm:
            return {last};
        case BlockKind::kHead:
            if (model.tied_embedding) return {};
            return {last};
        case BlockKind::kLayerSplit:
        case BlockKind::kLayerReplicated:
            break;
    }
    throw std::invalid_argument("layers have stages of their own");
}

std::vector<int> stages_of_layers(const Job& job, const Plan& plan, bool once) {
    const Layout& layout = plan.layout;
    const int stages = layout.virtual_stages();
    if (plan.layers_of_cell.size() != static_cast<std::size_t>(layout.data * stages))
        throw std::invalid_argument("the plan gives layers to " + std::to_string(plan.layers_of_cell.size()) +
                                    " virtual stages of all replicas, not to " + std::to_string(layout.data * stages));
    std::vector<int> result;
    const int replicas = once ? 1 : layout.data;
    result.reserve(static_cast<std::size_t>(replicas * job.model.layers));
    for (int replica = 0; replica < replicas; ++replica)
        for (int k = 0; k < stages; ++k)
            for (int layer = 0; layer < plan.layers(replica, k); ++layer) result.push_back(k % layout.pipeline);
    if (result.size() != static_cast<std::size_t>(replicas * job.model.layers))
        throw std::invalid_argument("the plan's replicas do not hold the model's layers");
    return result;
}

Ownership::Ownership(const Job& job, const Plan& plan)
    : layout_(plan.layout),
      layers_(job.model.layers),
      tied_(job.model.tied_embedding),
      blocks_(blocks_of(job.model)),
      stage_of_layer_(stages_of_layers(job, plan)) {
    for (int kind = 0; kind <= static_cast<int>(BlockKind::kHead); ++kind)
        elements_.push_back(block_elements(job, layout_, static_cast<BlockKind>(kind)));
}

bool Ownership::holds(int replica, int stage, const Block& block) const {
    const int last = layout_.pipeline - 1;
    switch (block.kind) {
        case BlockKind::kEmbedding:
            return stage == 0 || (tied_ && stage == last);
        case BlockKind::kPositions:
            return stage == 0;
        case BlockKind::kFinalNorm:
            return stage == last;
        case BlockKind::kHead:
            return !tied_ && stage == last;
        case BlockKind::kLayerSplit:
        case BlockKind::kLayerReplicated:
            return stage_of_layer(replica, block.layer) == stage;
    }
    return false;
}

Interval Ownership::slice(BlockKind kind, StateKind state, int tensor, int shard) const {
    const Interval whole{0, elements(kind)};
    const Interval held = is_split(kind) ? part_of(whole, tensor, layout_.tensor) : whole;
    if (state == StateKind::kWeights || !layout_.distributed_optimizer) return held;
    return part_of(held, shard, std::int64_t{layout_.data} * layout_.context);
}

Interval Ownership::owned(int rank, const Block& block, StateKind kind) const {
    const int tensor = rank % layout_.tensor;
    const int context = rank / layout_.tensor % layout_.context;
    const int replica = rank / layout_.ranks_per_worker() % layout_.data;
    const int stage = rank / layout_.ranks_per_worker() / layout_.data;
    if (!holds(replica, stage, block)) return {};
    return slice(block.kind, kind, tensor, replica * layout_.context + context);
}

}  // namespace headway::scenarios
