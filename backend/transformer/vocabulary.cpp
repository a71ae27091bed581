#include "backend/transformer/vocabulary.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace headway::backend {

namespace {

/// Rows of logits start at multiples of so many elements: what vector loads and tensor cores want.
constexpr std::int64_t kLogitsAlignment = 16;
/// Of a rank whose rows are all padding: its one column of logits, which weighs nothing in any softmax.
constexpr double kNoLogit = -1e30;

}  // namespace

TokenEmbedding::TokenEmbedding(Device& device, TensorGroup& group, const ChunkShape& shape, const Tensor& table,
                               const Tensor& table_gradient, const Tensor& positions, const Tensor& positions_gradient)
    : device_(device),
      operations_(device.operations()),
      group_(group),
      sequence_(shape.model.sequence_length),
      rows_(shape.activation_rows()),
      table_(table),
      table_gradient_(table_gradient),
      positions_(positions),
      positions_gradient_(positions_gradient) {}

void TokenEmbedding::forward(const Tensor& tokens, const Tensor& result) const {
    OwnedTensor room;
    const Tensor partial = group_.partial(result, room);
    operations_.embedding(tokens, table_, group_.rank() * table_.rows, partial);
    TensorGroup::Pending summing = group_.sum(partial, result);
    group_.wait(summing);
    const std::int64_t first = group_.slices() ? group_.rank() * rows_ : 0;
    if (!positions_.empty()) operations_.add_positions(positions_, sequence_, first, result);
}

void TokenEmbedding::backward(const Tensor& tokens, const Tensor& gradient) const {
    OwnedTensor room;
    auto [all, gathering] = group_.whole(gradient, room);
    group_.wait(gathering);
    operations_.embedding_gradient(tokens, all, group_.rank() * table_.rows, table_gradient_);
    const std::int64_t first = group_.slices() ? group_.rank() * rows_ : 0;
    if (!positions_.empty()) operations_.positions_gradient(gradient, sequence_, first, positions_gradient_);
}

VocabularyHead::VocabularyHead(Device& device, TensorGroup& group, const ChunkShape& shape, const Tensor& norm,
                               const Tensor& norm_gradient, const Tensor& table, const Tensor& table_gradient)
    : device_(device),
      operations_(device.operations()),
      group_(group),
      model_(shape.model),
      overlaps_(shape.layout.overlap_tensor_comm && !group.slices()),
      tokens_(shape.tokens()),
      rows_(shape.activation_rows()),
      first_token_(group.rank() * table.rows),
      columns_(std::clamp<std::int64_t>(model_.vocab - first_token_, 0, table.rows)),
      norm_weight_(norm.elements(0, model_.hidden)),
      norm_weight_gradient_(norm_gradient.elements(0, model_.hidden)),
      table_(table.row_range(0, columns_)),
      table_gradient_(table_gradient.row_range(0, columns_)),
      loss_sums_(device, device.accumulation_type(), 1, tokens_) {
    if (model_.norm == scenarios::Norm::kLayer) {
        norm_bias_ = norm.elements(model_.hidden, model_.hidden);
        norm_bias_gradient_ = norm_gradient.elements(model_.hidden, model_.hidden);
    }
    operations_.fill(loss_sums_.tensor, 0.0);
}

OwnedTensor VocabularyHead::working(std::int64_t rows, std::int64_t columns) const {
    return {device_, device_.working_type(), rows, columns};
}

void VocabularyHead::logits(const Tensor& x, HeadState& state) const {
    state.normal = working(rows_, model_.hidden);
    state.reciprocal = OwnedTensor(device_, device_.accumulation_type(), 1, rows_);
    if (model_.norm == scenarios::Norm::kRms) {
        operations_.rms_norm(x, norm_weight_, model_.norm_epsilon, state.normal.tensor, state.reciprocal.tensor);
    } else {
        state.mean = OwnedTensor(device_, device_.accumulation_type(), 1, rows_);
        operations_.layer_norm(x, norm_weight_, norm_bias_, model_.norm_epsilon, state.normal.tensor, state.mean.tensor,
                               state.reciprocal.tensor);
    }
    OwnedTensor room;
    auto [normal, gathering] = group_.whole(state.normal.tensor, room);
    group_.wait(gathering);
    const std::int64_t columns = std::max<std::int64_t>(columns_, 1);
    const std::int64_t stride = (columns + kLogitsAlignment - 1) / kLogitsAlignment * kLogitsAlignment;
    state.logits = working(tokens_, stride);
    state.logits.tensor = state.logits.tensor.column_range(0, columns);
    if (columns_ == 0) {
        operations_.fill(state.logits.tensor, kNoLogit);
    } else {
        operations_.gemm(Transpose::kNo, Transpose::kYes, 1.0, normal, table_, 0.0, state.logits.tensor);
    }
}

void VocabularyHead::forward(const Tensor& x, const Tensor& targets, double loss_scale, HeadState& state) {
    logits(x, state);
    compute_losses(state.logits.tensor, targets, loss_scale);
}

void VocabularyHead::compute_losses(const Tensor& logits, const Tensor& targets, double loss_scale) {
    const std::int64_t first = columns_ == 0 ? std::numeric_limits<std::int32_t>::max() : first_token_;
    const OwnedTensor statistics(device_, device_.accumulation_type(), 4, tokens_);
    const Tensor maxima = statistics.tensor.row_range(0, 1), sums = statistics.tensor.row_range(1, 1);
    const Tensor target_logits = statistics.tensor.row_range(2, 1), losses = statistics.tensor.row_range(3, 1);
    operations_.row_maxima(logits, maxima);
    group_.all_reduce(maxima, ReduceOperation::kMaximum);
    operations_.exponential_sums(logits, maxima, targets, first, sums, target_logits);
    group_.all_reduce(statistics.tensor.row_range(1, 2), ReduceOperation::kSum);  // both in one
    operations_.cross_entropy(logits, maxima, sums, targets, target_logits, first, loss_scale, losses);
    operations_.add(losses, loss_sums_.tensor);
}

void VocabularyHead::backward_input(const Tensor& x, HeadState& state, const Tensor& gradient, bool weights_too) const {
    OwnedTensor room;
    const OwnedTensor normal_gradient = working(rows_, model_.hidden);
    const Tensor partial = group_.partial(normal_gradient.tensor, room);
    if (columns_ == 0) {
        operations_.fill(partial, 0.0);
    } else {
        operations_.gemm(Transpose::kNo, Transpose::kNo, 1.0, state.logits.tensor, table_, 0.0, partial);
    }
    TensorGroup::Pending summing = group_.sum(partial, normal_gradient.tensor);
    if (!overlaps_) group_.wait(summing);
    if (weights_too) table_gradient(state);
    group_.wait(summing);
    operations_.fill(gradient, 0.0);
    if (model_.norm == scenarios::Norm::kRms) {
        operations_.rms_norm_gradient(normal_gradient.tensor, x, norm_weight_, state.reciprocal.tensor, gradient,
                                      norm_weight_gradient_);
    } else {
        operations_.layer_norm_gradient(normal_gradient.tensor, x, norm_weight_, state.mean.tensor,
                                        state.reciprocal.tensor, gradient, norm_weight_gradient_, norm_bias_gradient_);
    }
    if (weights_too) state = HeadState();
}

void VocabularyHead::backward_weight(HeadState& state) const {
    table_gradient(state);
    state = HeadState();
}

void VocabularyHead::table_gradient(HeadState& state) const {
    OwnedTensor room;
    auto [normal, gathering] = group_.whole(state.normal.tensor, room);
    group_.wait(gathering);
    if (columns_ > 0)
        operations_.gemm(Transpose::kYes, Transpose::kNo, 1.0, state.logits.tensor, normal, 1.0, table_gradient_);
}

double VocabularyHead::take_loss() {
    const auto count = static_cast<std::size_t>(tokens_);
    double sum = 0.0;
    if (loss_sums_.tensor.type == DataType::kFloat64) {
        std::vector<double> losses(count);
        device_.to_host(loss_sums_.tensor, losses.data());
        sum = std::accumulate(losses.begin(), losses.end(), 0.0);
    } else {
        std::vector<float> losses(count);
        device_.to_host(loss_sums_.tensor, losses.data());
        sum = std::accumulate(losses.begin(), losses.end(), 0.0);
    }
    operations_.fill(loss_sums_.tensor, 0.0);
    return sum;
}

}  // namespace headway::backend
