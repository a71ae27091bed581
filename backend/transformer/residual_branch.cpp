#include "backend/transformer/residual_branch.h"

#include "scenarios/costs/parameters.h"

namespace headway::backend {

ResidualBranch::ResidualBranch(Device& device, TensorGroup& group, const ChunkShape& shape, BranchKind kind,
                               const BranchTensors& weights, const BranchTensors& gradients)
    : device_(device),
      operations_(device.operations()),
      group_(group),
      model_(shape.model),
      recompute_(shape.layout.recompute),
      overlaps_(shape.layout.overlap_tensor_comm),
      tokens_(shape.tokens()),
      rows_(shape.activation_rows()),
      kind_(kind),
      weights_(weights),
      gradients_(gradients) {
    attention_.batch = shape.micro_batch;
    attention_.sequence = model_.sequence_length;
    attention_.heads = model_.heads / shape.layout.tensor;
    attention_.kv_heads = model_.kv_heads / shape.layout.tensor;
    attention_.head_dim = scenarios::head_dim_of(model_);
}

OwnedTensor ResidualBranch::working(std::int64_t rows, std::int64_t columns) const {
    return {device_, device_.working_type(), rows, columns};
}

void ResidualBranch::forward(const Tensor& x, BranchState& state, const Tensor& result) const {
    normalize(x, state);
    {
        OwnedTensor room;
        auto [normal, gathering] = group_.whole(state.normal.tensor, room);
        group_.wait(gathering);
        state.inputs = working(tokens_, weights_.input_weight.rows);
        operations_.gemm(Transpose::kNo, Transpose::kYes, 1.0, normal, weights_.input_weight, 0.0, state.inputs.tensor);
    }
    if (!weights_.input_bias.empty()) operations_.add_bias(state.inputs.tensor, weights_.input_bias);
    if (kind_ == BranchKind::kAttention && model_.positions == scenarios::Positions::kRotary) {
        const std::int64_t turned = (attention_.heads + attention_.kv_heads) * attention_.head_dim;
        operations_.rotary(state.inputs.tensor.column_range(0, turned), attention_.sequence, attention_.head_dim,
                           model_.rotary_base, false);
    }
    core(state);
    if (result.empty()) return;
    OwnedTensor room;
    const Tensor partial = group_.partial(result, room);
    operations_.gemm(Transpose::kNo, Transpose::kNo, 1.0, state.outputs.tensor, weights_.output_weight, 0.0, partial);
    TensorGroup::Pending summing = group_.sum(partial, result);
    group_.wait(summing);
    operations_.add(x, result);
    if (!weights_.output_bias.empty()) operations_.add_bias(result, weights_.output_bias);
}

void ResidualBranch::normalize(const Tensor& x, BranchState& state) const {
    state.normal = working(rows_, model_.hidden);
    state.reciprocal = OwnedTensor(device_, device_.accumulation_type(), 1, rows_);
    if (model_.norm == scenarios::Norm::kRms) {
        operations_.rms_norm(x, weights_.norm_weight, model_.norm_epsilon, state.normal.tensor,
                             state.reciprocal.tensor);
        return;
    }
    state.mean = OwnedTensor(device_, device_.accumulation_type(), 1, rows_);
    operations_.layer_norm(x, weights_.norm_weight, weights_.norm_bias, model_.norm_epsilon, state.normal.tensor,
                           state.mean.tensor, state.reciprocal.tensor);
}

void ResidualBranch::core(BranchState& state) const {
    const Tensor& inputs = state.inputs.tensor;
    const std::int64_t width = weights_.output_weight.rows;
    state.outputs = working(tokens_, width);
    if (kind_ == BranchKind::kAttention) {
        const std::int64_t keys = attention_.kv_heads * attention_.head_dim;
        state.log_sums =
            OwnedTensor(device_, device_.accumulation_type(), attention_.batch * attention_.heads, attention_.sequence);
        operations_.attention(attention_, inputs.column_range(0, width), inputs.column_range(width, keys),
                              inputs.column_range(width + keys, keys), state.outputs.tensor, state.log_sums.tensor);
    } else if (model_.gated_mlp) {
        operations_.swiglu(inputs.column_range(0, width), inputs.column_range(width, width), state.outputs.tensor);
    } else {
        operations_.gelu(inputs, state.outputs.tensor);
    }
}

void ResidualBranch::forget_core(BranchState& state) const {
    if (kind_ != BranchKind::kAttention) return;
    state.outputs.release();
    state.log_sums.release();
}

Tensor ResidualBranch::core_gradient(BranchState& state, const Tensor& outputs_gradient) const {
    const Tensor& inputs = state.inputs.tensor;
    const std::int64_t width = weights_.output_weight.rows;
    if (kind_ == BranchKind::kMlp) {  // element by element, so in place
        if (model_.gated_mlp) {
            const Tensor gate = inputs.column_range(0, width), up = inputs.column_range(width, width);
            operations_.swiglu_gradient(gate, up, outputs_gradient, gate, up);
        } else {
            operations_.gelu_gradient(inputs, outputs_gradient, inputs);
        }
        return inputs;
    }
    const std::int64_t keys = attention_.kv_heads * attention_.head_dim;
    state.input_gradient = working(tokens_, inputs.columns);
    const Tensor& gradient = state.input_gradient.tensor;
    operations_.attention_gradient(attention_, outputs_gradient, inputs.column_range(0, width),
                                   inputs.column_range(width, keys), inputs.column_range(width + keys, keys),
                                   state.outputs.tensor, state.log_sums.tensor, gradient.column_range(0, width),
                                   gradient.column_range(width, keys), gradient.column_range(width + keys, keys));
    if (model_.positions == scenarios::Positions::kRotary)
        operations_.rotary(gradient.column_range(0, width + keys), attention_.sequence, attention_.head_dim,
                           model_.rotary_base, true);
    state.inputs.release();
    state.log_sums.release();
    return gradient;
}

void ResidualBranch::norm_gradient(const Tensor& x, const BranchState& state, const Tensor& dy,
                                   const Tensor& gradient) const {
    if (model_.norm == scenarios::Norm::kRms) {
        operations_.rms_norm_gradient(dy, x, weights_.norm_weight, state.reciprocal.tensor, gradient,
                                      gradients_.norm_weight);
    } else {
        operations_.layer_norm_gradient(dy, x, weights_.norm_weight, state.mean.tensor, state.reciprocal.tensor,
                                        gradient, gradients_.norm_weight, gradients_.norm_bias);
    }
}

void ResidualBranch::backward_input(const Tensor& x, BranchState& state, const Tensor& gradient,
                                    bool weights_too) const {
    if (!weights_.output_bias.empty()) operations_.bias_gradient(gradient, gradients_.output_bias);
    auto [result_gradient, gathering] = group_.whole(gradient, state.result_gradient);
    if (!overlaps_) group_.wait(gathering);
    if (!state.outputs) core(state);
    group_.wait(gathering);
    if (!weights_too && !group_.slices()) {  // `gradient` goes on to other values
        state.result_gradient = working(tokens_, model_.hidden);
        operations_.copy(gradient, state.result_gradient.tensor);
        result_gradient = state.result_gradient.tensor;
    }

    Tensor inputs_gradient;
    {
        const OwnedTensor outputs_gradient = working(tokens_, weights_.output_weight.rows);
        operations_.gemm(Transpose::kNo, Transpose::kYes, 1.0, result_gradient, weights_.output_weight, 0.0,
                         outputs_gradient.tensor);
        inputs_gradient = core_gradient(state, outputs_gradient.tensor);
    }
    OwnedTensor room;
    const OwnedTensor normal_gradient = working(rows_, model_.hidden);
    const Tensor partial = group_.partial(normal_gradient.tensor, room);
    operations_.gemm(Transpose::kNo, Transpose::kNo, 1.0, inputs_gradient, weights_.input_weight, 0.0, partial);
    TensorGroup::Pending summing = group_.sum(partial, normal_gradient.tensor);
    if (!overlaps_) group_.wait(summing);
    if (weights_too) weight_gradients(state, result_gradient);
    group_.wait(summing);
    norm_gradient(x, state, normal_gradient.tensor, gradient);
    state.mean.release();
    state.reciprocal.release();
    if (weights_too) state = BranchState();
}

void ResidualBranch::backward_weight(BranchState& state) const {
    weight_gradients(state, state.result_gradient.tensor);
    state = BranchState();
}

void ResidualBranch::weight_gradients(BranchState& state, const Tensor& result_gradient) const {
    OwnedTensor room;
    auto [normal, gathering] = group_.whole(state.normal.tensor, room);
    if (!overlaps_) group_.wait(gathering);
    operations_.gemm(Transpose::kYes, Transpose::kNo, 1.0, state.outputs.tensor, result_gradient, 1.0,
                     gradients_.output_weight);
    const Tensor& inputs_gradient = state.input_gradient ? state.input_gradient.tensor : state.inputs.tensor;
    if (!weights_.input_bias.empty()) operations_.bias_gradient(inputs_gradient, gradients_.input_bias);
    group_.wait(gathering);
    operations_.gemm(Transpose::kYes, Transpose::kNo, 1.0, inputs_gradient, normal, 1.0, gradients_.input_weight);
}

}  // namespace headway::backend
