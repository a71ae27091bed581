#include "backend/transformer/chunk.h"

#include <map>
#include <optional>
#include <stdexcept>
#include <string>

#include "backend/transformer/block_order.h"
#include "backend/transformer/chunk_weights.h"
#include "backend/transformer/owned_tensor.h"
#include "backend/transformer/residual_branch.h"
#include "backend/transformer/tensor_group.h"
#include "backend/transformer/vocabulary.h"
#include "scenarios/costs/parameters.h"

namespace headway::backend {

namespace {

using scenarios::BlockKind;

void require_trainable(const ChunkShape& shape) {
    const scenarios::Model& model = shape.model;
    const auto refuse = [](const std::string& what) { throw std::invalid_argument(what); };
    const auto divides = [&](const char* name, std::int64_t value) {
        if (value % shape.layout.tensor != 0)
            refuse("model." + std::string(name) + ": " + std::to_string(value) + " cannot be split over " +
                   std::to_string(shape.layout.tensor) + " tensor ranks");
    };
    if (model.positions == scenarios::Positions::kAlibi) refuse("ALiBi positions cannot be trained here");
    if (shape.layout.context != 1) refuse("context parallelism cannot be trained here");
    if (shape.layout.tensor < 1 || shape.tensor_rank < 0 || shape.tensor_rank >= shape.layout.tensor)
        refuse("the tensor rank is none of the layout's");
    if (model.kv_heads < 1 || model.heads % model.kv_heads != 0) refuse("kv_heads must divide heads");
    divides("heads", model.heads);
    divides("kv_heads", model.kv_heads);
    divides("ffn", model.ffn);
    if (shape.embeds || shape.has_head) divides("vocab (padded)", shape.padded_vocab);
    if (shape.layout.sequence_parallel) divides("tokens of a micro-batch", shape.tokens());
    if (shape.padded_vocab < model.vocab && (shape.embeds || shape.has_head))
        refuse("the padded vocabulary is smaller than the vocabulary");
    if (model.positions == scenarios::Positions::kRotary && scenarios::head_dim_of(model) % 2 != 0)
        refuse("rotary positions need an even head_dim");
}

}  // namespace

class Chunk::Impl {
  public:
    Impl(Device& device, const ChunkShape& of, Communicator* tensor)
        : shape(of),
          weights(device, of),
          device_(device),
          operations_(device.operations()),
          group_(device, tensor, of.layout, of.tensor_rank) {
        make_layers();
    }

    void forward(int micro_batch, const Tensor& input, const Tensor& targets, double loss_scale, const Tensor& output);
    void backward_input(int micro_batch, const Tensor& output_gradient, const Tensor& input_gradient, bool weights_too);
    void backward_weight(int micro_batch);

    double take_loss() {
        if (!head_) throw std::logic_error("only the last chunk has a loss");
        return head_->take_loss();
    }
    scenarios::Duration take_exposed_communication() { return group_.take_exposed(); }

    const ChunkShape shape;
    const ChunkWeights weights;

  private:
    /// What one layer keeps of a micro-batch.
    struct LayerState {
        OwnedTensor x;       ///< into the attention
        OwnedTensor middle;  ///< into the MLP
        BranchState attention;
        BranchState mlp;
    };
    /// What the chunk keeps of one.
    struct MicroBatchState {
        OwnedTensor tokens;
        std::vector<LayerState> layers;
        OwnedTensor last;  ///< into the final norm
        HeadState head;
        OwnedTensor embedding_gradient;  ///< of the embedding's result
        bool half_done = false;          ///< backward_input was there, backward_weight was not
    };
    struct Layer {
        ResidualBranch attention;
        ResidualBranch mlp;
    };

    void make_layers();
    void forward_layer(const Layer& layer, LayerState& state, const Tensor& result) const;
    void restore_layer(const Layer& layer, LayerState& state) const;
    MicroBatchState& state_of(int micro_batch, bool half_done);
    void require(const char* name, const Tensor& tensor, bool expected, DataType type, std::int64_t rows,
                 std::int64_t columns) const;
    OwnedTensor activations() const {
        return {device_, device_.working_type(), shape.activation_rows(), shape.model.hidden};
    }

    Device& device_;
    Operations& operations_;
    TensorGroup group_;
    std::optional<TokenEmbedding> embedding_;
    std::vector<Layer> layers_;
    std::optional<VocabularyHead> head_;
    std::map<int, MicroBatchState> in_flight_;
};

void Chunk::Impl::make_layers() {
    const int degree = shape.layout.tensor;
    for (int layer = shape.first_layer; layer < shape.first_layer + shape.layers; ++layer) {
        const BlockWeights& split = *weights.find(BlockKind::kLayerSplit, layer);
        const BlockWeights& replicated = *weights.find(BlockKind::kLayerReplicated, layer);
        const auto branch = [&](BranchKind kind) {
            return ResidualBranch(device_, group_, shape, kind,
                                  branch_tensors(shape.model, degree, kind, split.weights, replicated.weights),
                                  branch_tensors(shape.model, degree, kind, split.gradients, replicated.gradients));
        };
        layers_.push_back({branch(BranchKind::kAttention), branch(BranchKind::kMlp)});
    }
    if (shape.embeds) {
        const BlockWeights* table = weights.find(BlockKind::kEmbedding);
        const BlockWeights* positions = weights.find(BlockKind::kPositions);
        const auto rows = [&](const Tensor& block) {
            return block.shaped(block.count() / shape.model.hidden, shape.model.hidden);
        };
        embedding_.emplace(device_, group_, shape, rows(table->weights), rows(table->gradients),
                           positions ? rows(positions->weights) : Tensor{},
                           positions ? rows(positions->gradients) : Tensor{});
    }
    if (shape.has_head) {
        const BlockWeights* norm = weights.find(BlockKind::kFinalNorm);
        const BlockWeights* table = weights.find(shape.model.tied_embedding ? BlockKind::kEmbedding : BlockKind::kHead);
        const std::int64_t rows = table->weights.count() / shape.model.hidden;
        head_.emplace(device_, group_, shape, norm->weights, norm->gradients,
                      table->weights.shaped(rows, shape.model.hidden),
                      table->gradients.shaped(rows, shape.model.hidden));
    }
}

void Chunk::Impl::require(const char* name, const Tensor& tensor, bool expected, DataType type, std::int64_t rows,
                          std::int64_t columns) const {
    if (!expected && tensor.empty()) return;
    if (expected && tensor.type == type && tensor.rows == rows && tensor.columns == columns && tensor.contiguous())
        return;
    throw std::invalid_argument(std::string("chunk: ") + name + " is " + std::to_string(tensor.rows) + " x " +
                                std::to_string(tensor.columns) + ", not " +
                                (expected ? std::to_string(rows) + " x " + std::to_string(columns) : "empty") +
                                " and contiguous in the type it should have");
}

Chunk::Impl::MicroBatchState& Chunk::Impl::state_of(int micro_batch, bool half_done) {
    const auto found = in_flight_.find(micro_batch);
    if (found == in_flight_.end() || found->second.half_done != half_done)
        throw std::invalid_argument("chunk: micro-batch " + std::to_string(micro_batch) + " is not at this point");
    return found->second;
}

void Chunk::Impl::forward_layer(const Layer& layer, LayerState& state, const Tensor& result) const {
    state.middle = activations();
    layer.attention.forward(state.x.tensor, state.attention, state.middle.tensor);
    if (shape.layout.recompute == scenarios::Recompute::kSelective) layer.attention.forget_core(state.attention);
    if (shape.layout.recompute == scenarios::Recompute::kFull) state.attention = BranchState();
    layer.mlp.forward(state.middle.tensor, state.mlp, result);
    if (shape.layout.recompute == scenarios::Recompute::kFull) {
        state.mlp = BranchState();
        state.middle.release();
    }
}

void Chunk::Impl::restore_layer(const Layer& layer, LayerState& state) const {
    if (shape.layout.recompute != scenarios::Recompute::kFull) return;
    state.middle = activations();
    layer.attention.forward(state.x.tensor, state.attention, state.middle.tensor);
    layer.mlp.forward(state.middle.tensor, state.mlp, {});
}

void Chunk::Impl::forward(int micro_batch, const Tensor& input, const Tensor& targets, double loss_scale,
                          const Tensor& output) {
    const std::int64_t rows = shape.activation_rows(), hidden = shape.model.hidden;
    const DataType working = device_.working_type();
    require("input", input, true, shape.embeds ? DataType::kInt32 : working, shape.embeds ? 1 : rows,
            shape.embeds ? shape.tokens() : hidden);
    require("targets", targets, shape.has_head, DataType::kInt32, 1, shape.tokens());
    require("output", output, !shape.has_head, working, rows, hidden);
    const auto [at, fresh] = in_flight_.try_emplace(micro_batch);
    if (!fresh) throw std::invalid_argument("chunk: micro-batch " + std::to_string(micro_batch) + " is in flight");
    MicroBatchState& state = at->second;
    state.layers.resize(layers_.size());
    // Where layer `number` begins, or what follows the last.
    const auto start_of = [&](std::size_t number) -> Tensor {
        if (number == layers_.size() && !shape.has_head) return output;
        OwnedTensor& start = number == layers_.size() ? state.last : state.layers[number].x;
        start = activations();
        return start.tensor;
    };
    const Tensor first = start_of(0);
    if (shape.embeds) {
        state.tokens = OwnedTensor(device_, DataType::kInt32, 1, shape.tokens());
        operations_.copy(input, state.tokens.tensor);
        embedding_->forward(input, first);
    } else {
        operations_.copy(input, first);
    }
    for (std::size_t i = 0; i < layers_.size(); ++i) forward_layer(layers_[i], state.layers[i], start_of(i + 1));
    if (shape.has_head) head_->forward(state.last.tensor, targets, loss_scale, state.head);
}

void Chunk::Impl::backward_input(int micro_batch, const Tensor& output_gradient, const Tensor& input_gradient,
                                 bool weights_too) {
    const std::int64_t rows = shape.activation_rows(), hidden = shape.model.hidden;
    const DataType working = device_.working_type();
    require("output gradient", output_gradient, !shape.has_head, working, rows, hidden);
    require("input gradient", input_gradient, !shape.embeds, working, rows, hidden);
    MicroBatchState& state = state_of(micro_batch, false);

    // One matrix is the gradient of what flows along the residual connection, from the last layer to the first.
    Tensor gradient = input_gradient;
    if (shape.embeds) {
        state.embedding_gradient = activations();
        gradient = state.embedding_gradient.tensor;
    }
    if (shape.has_head) {
        head_->backward_input(state.last.tensor, state.head, gradient, weights_too);
        state.last.release();
    } else if (output_gradient.data != gradient.data) {
        operations_.copy(output_gradient, gradient);
    }
    for (std::size_t i = layers_.size(); i-- > 0;) {
        LayerState& layer = state.layers[i];
        restore_layer(layers_[i], layer);
        layers_[i].mlp.backward_input(layer.middle.tensor, layer.mlp, gradient, weights_too);
        layer.middle.release();
        layers_[i].attention.backward_input(layer.x.tensor, layer.attention, gradient, weights_too);
        layer.x.release();
    }
    state.half_done = true;
    if (!weights_too) return;
    if (shape.embeds) embedding_->backward(state.tokens.tensor, gradient);
    in_flight_.erase(micro_batch);
}

void Chunk::Impl::backward_weight(int micro_batch) {
    MicroBatchState& state = state_of(micro_batch, true);
    if (shape.has_head) head_->backward_weight(state.head);
    for (std::size_t i = layers_.size(); i-- > 0;) {
        layers_[i].mlp.backward_weight(state.layers[i].mlp);
        layers_[i].attention.backward_weight(state.layers[i].attention);
    }
    if (shape.embeds) embedding_->backward(state.tokens.tensor, state.embedding_gradient.tensor);
    in_flight_.erase(micro_batch);
}

Chunk::Chunk(Device& device, const ChunkShape& shape, Communicator* tensor)
    : impl_((require_trainable(shape), std::make_unique<Impl>(device, shape, tensor))) {}
Chunk::~Chunk() = default;

const ChunkShape& Chunk::shape() const {
    return impl_->shape;
}
std::span<const BlockWeights> Chunk::blocks() const {
    return impl_->weights.blocks();
}
Tensor Chunk::gradients() const {
    return impl_->weights.gradients();
}
void Chunk::forward(int micro_batch, const Tensor& input, const Tensor& targets, double loss_scale,
                    const Tensor& output) {
    impl_->forward(micro_batch, input, targets, loss_scale, output);
}
void Chunk::backward(int micro_batch, const Tensor& output_gradient, const Tensor& input_gradient) {
    impl_->backward_input(micro_batch, output_gradient, input_gradient, true);
}
void Chunk::backward_input(int micro_batch, const Tensor& output_gradient, const Tensor& input_gradient) {
    impl_->backward_input(micro_batch, output_gradient, input_gradient, false);
}
void Chunk::backward_weight(int micro_batch) {
    impl_->backward_weight(micro_batch);
}
double Chunk::take_loss() {
    return impl_->take_loss();
}
scenarios::Duration Chunk::take_exposed_communication() {
    return impl_->take_exposed_communication();
}

}  // namespace headway::backend
