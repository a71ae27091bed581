#include "tests/backend/transformer/chunk_run.h"

#include <cstring>

#include "backend/transformer/owned_tensor.h"
#include "scenarios/costs/parameters.h"
#include "scenarios/language/random.h"

namespace headway::backend {

using scenarios::BlockKind;

scenarios::Model small_gpt2() {
    scenarios::Model model;
    model.layers = 2;
    model.hidden = 16;
    model.heads = 4;
    model.kv_heads = 4;
    model.head_dim = 4;
    model.ffn = 32;
    model.vocab = 13;
    model.sequence_length = 6;
    return model;
}

scenarios::Model small_llama() {
    scenarios::Model model = small_gpt2();
    model.kv_heads = 2;
    model.ffn = 24;
    model.gated_mlp = true;
    model.positions = scenarios::Positions::kRotary;
    model.norm = scenarios::Norm::kRms;
    model.biases = false;
    model.tied_embedding = false;
    model.rotary_base = 100.0;
    return model;
}

namespace {

std::int64_t whole_elements(const scenarios::Model& model, std::int64_t padded_vocab, BlockKind kind) {
    switch (kind) {
        case BlockKind::kEmbedding:
        case BlockKind::kHead:
            return padded_vocab * model.hidden;
        case BlockKind::kPositions:
            return scenarios::position_parameters(model);
        case BlockKind::kLayerSplit:
            return scenarios::layer_parameters(model).split;
        case BlockKind::kLayerReplicated:
            return scenarios::layer_parameters(model).replicated;
        case BlockKind::kFinalNorm:
            return scenarios::final_norm_parameters(model);
    }
    return 0;
}

}  // namespace

BlockValues strong_weights(const scenarios::Model& model, std::int64_t padded_vocab, std::uint64_t seed) {
    BlockValues values;
    scenarios::RandomStream stream(seed, "strong weights");
    for (const scenarios::Block& block : scenarios::blocks_of(model)) {
        std::vector<double>& block_values = values[{block.kind, block.layer}];
        const bool norms = block.kind == BlockKind::kLayerReplicated || block.kind == BlockKind::kFinalNorm;
        const bool rows = block.kind == BlockKind::kEmbedding || block.kind == BlockKind::kHead;
        block_values.resize(static_cast<std::size_t>(whole_elements(model, padded_vocab, block.kind)));
        const auto drawn = rows ? static_cast<std::size_t>(model.vocab * model.hidden) : block_values.size();
        for (std::size_t i = 0; i < drawn; ++i) block_values[i] = (norms ? 0.7 : 0.0) + 0.3 * stream.normal();
    }
    return values;
}

std::vector<Tokens> random_tokens(const RunSetup& setup, std::uint64_t seed) {
    scenarios::RandomStream stream(seed, "tokens");
    std::vector<Tokens> result(static_cast<std::size_t>(setup.micro_batches));
    const auto count = static_cast<std::size_t>(setup.micro_batch * setup.model.sequence_length);
    for (Tokens& tokens : result) {
        for (std::vector<std::int32_t>* list : {&tokens.inputs, &tokens.targets}) {
            list->resize(count);
            for (std::int32_t& token : *list) token = static_cast<std::int32_t>(stream.below(setup.model.vocab));
        }
    }
    return result;
}

std::string RunResult::bytes() const {
    std::string bytes;
    const auto add = [&](const void* data, std::size_t size) { bytes.append(static_cast<const char*>(data), size); };
    add(&loss, sizeof loss);
    for (const auto& [block, values] : gradients) {
        const std::int64_t head[3] = {static_cast<std::int64_t>(block.first), block.second,
                                      static_cast<std::int64_t>(values.size())};
        add(head, sizeof head);
        add(values.data(), values.size() * sizeof(double));
    }
    return bytes;
}

RunResult RunResult::from_bytes(const std::string& bytes) {
    RunResult result;
    const char* at = bytes.data();
    const auto take = [&](void* to, std::size_t size) {
        std::memcpy(to, at, size);
        at += size;
    };
    take(&result.loss, sizeof result.loss);
    while (at < bytes.data() + bytes.size()) {
        std::int64_t head[3];
        take(head, sizeof head);
        std::vector<double>& values = result.gradients[{static_cast<BlockKind>(head[0]), static_cast<int>(head[1])}];
        values.resize(static_cast<std::size_t>(head[2]));
        take(values.data(), values.size() * sizeof(double));
    }
    return result;
}

ChunkRun::ChunkRun(Device& device, const RunSetup& setup, int tensor_rank, Communicator* tensor)
    : device_(device), setup_(setup), tensor_rank_(tensor_rank) {
    if (setup_.layers_of_chunk.empty()) setup_.layers_of_chunk = {setup.model.layers};
    int first_layer = 0;
    for (std::size_t i = 0; i < setup_.layers_of_chunk.size(); ++i) {
        ChunkShape shape;
        shape.model = setup.model;
        shape.layout = setup.layout;
        shape.tensor_rank = tensor_rank;
        shape.first_layer = first_layer;
        shape.layers = setup_.layers_of_chunk[i];
        shape.embeds = i == 0;
        shape.has_head = i + 1 == setup_.layers_of_chunk.size();
        shape.micro_batch = setup.micro_batch;
        shape.padded_vocab = setup.padded();
        chunks_.push_back(std::make_unique<Chunk>(device, shape, tensor));
        first_layer += shape.layers;
    }
}

namespace {

/// The host's own memory of a tensor, in double precision.
std::vector<double> host_values(Device& device, const Tensor& tensor) {
    std::vector<double> values(static_cast<std::size_t>(tensor.count()));
    if (tensor.type == DataType::kFloat64) {
        device.to_host(tensor, values.data());
        return values;
    }
    std::vector<float> narrow(values.size());
    device.to_host(tensor, narrow.data());
    values.assign(narrow.begin(), narrow.end());
    return values;
}

}  // namespace

void ChunkRun::set_weights(const BlockValues& whole) {
    const DataType type = device_.accumulation_type();
    for (const auto& chunk : chunks_) {
        for (const BlockWeights& held : chunk->blocks()) {
            const std::vector<double>& values = whole.at({held.block.kind, held.block.layer});
            const std::int64_t count = held.weights.count();
            const std::int64_t first = scenarios::is_split(held.block.kind) ? tensor_rank_ * count : 0;
            const OwnedTensor part(device_, type, 1, count);
            if (type == DataType::kFloat64) {
                device_.from_host(values.data() + first, part.tensor);
            } else {
                const std::vector<float> narrow(values.begin() + first, values.begin() + first + count);
                device_.from_host(narrow.data(), part.tensor);
            }
            block_to_kernel_order(device_, setup_.model, setup_.layout.tensor, held.block.kind, part.tensor,
                                  held.weights);
        }
    }
}

BlockValues ChunkRun::take_gradients() {
    BlockValues result;
    for (const auto& chunk : chunks_) {
        for (const BlockWeights& held : chunk->blocks()) {
            const OwnedTensor part(device_, held.gradients.type, 1, held.gradients.count());
            kernel_to_block_order(device_, setup_.model, setup_.layout.tensor, held.block.kind, held.gradients,
                                  part.tensor);
            device_.operations().fill(held.gradients, 0.0);
            const std::vector<double> values = host_values(device_, part.tensor);
            std::vector<double>& sum = result[{held.block.kind, held.block.layer}];
            sum.resize(values.size());
            for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];  // tied: of two chunks
        }
    }
    return result;
}

RunResult ChunkRun::run(const std::vector<Tokens>& tokens) {
    const ChunkShape& shape = chunks_.front()->shape();
    const double scale = 1.0 / static_cast<double>(shape.tokens() * static_cast<std::int64_t>(tokens.size()));
    const auto activations = [&] {
        return OwnedTensor(device_, device_.working_type(), shape.activation_rows(), shape.model.hidden);
    };
    const auto on_device = [&](const std::vector<std::int32_t>& values) {
        OwnedTensor tensor(device_, DataType::kInt32, 1, static_cast<std::int64_t>(values.size()));
        device_.from_host(values.data(), tensor.tensor);
        return tensor;
    };
    const int count = static_cast<int>(tokens.size());
    for (int m = 0; m < count; ++m) {
        const Tokens& batch = tokens[static_cast<std::size_t>(m)];
        OwnedTensor flow = on_device(batch.inputs);
        const OwnedTensor targets = on_device(batch.targets);
        for (const auto& chunk : chunks_) {
            const bool last = chunk->shape().has_head;
            OwnedTensor next = last ? OwnedTensor() : activations();
            chunk->forward(m, flow.tensor, last ? targets.tensor : Tensor{}, scale, next.tensor);
            flow = std::move(next);  // its memory is used for other things before backward
        }
    }
    for (int m = 0; m < count; ++m) {
        OwnedTensor flow;
        for (std::size_t i = chunks_.size(); i-- > 0;) {
            Chunk& chunk = *chunks_[i];
            OwnedTensor next = chunk.shape().embeds ? OwnedTensor() : activations();
            if (setup_.split_backward) {
                chunk.backward_input(m, flow.tensor, next.tensor);
            } else {
                chunk.backward(m, flow.tensor, next.tensor);
            }
            flow = std::move(next);
        }
    }
    if (setup_.split_backward)
        for (int m = 0; m < count; ++m)
            for (const auto& chunk : chunks_) chunk->backward_weight(m);
    RunResult result;
    result.loss = chunks_.back()->take_loss();
    result.gradients = take_gradients();
    return result;
}

}  // namespace headway::backend
