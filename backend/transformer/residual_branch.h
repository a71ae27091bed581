#pragma once

#include "backend/device/device.h"
#include "backend/transformer/block_order.h"
#include "backend/transformer/chunk.h"
#include "backend/transformer/owned_tensor.h"
#include "backend/transformer/tensor_group.h"

namespace headway::backend {

/// What a branch keeps of one micro-batch between forward and backward. The input of the branch is kept by its owner.
struct BranchState {
    OwnedTensor mean;             ///< layer norm; [1 x activation rows] (A)
    OwnedTensor reciprocal;       ///< [1 x activation rows] (A)
    OwnedTensor normal;           ///< [activation rows x hidden]: output of the norm
    OwnedTensor inputs;           ///< [tokens x inputs]: queries, keys and values, or before the activation function
    OwnedTensor outputs;          ///< [tokens x outputs]: of the attention, or of the activation function
    OwnedTensor log_sums;         ///< attention
    OwnedTensor input_gradient;   ///< of `inputs`, between the two halves of backward; a MLP puts it into `inputs`
    OwnedTensor result_gradient;  ///< [tokens x hidden], between the two halves of backward
};

/// One half of a decoder block: x + output(core(input(norm(x)))), where the core is the attention or the activation
/// function of the MLP. `input` is column-parallel, `output` row-parallel.
class ResidualBranch {
  public:
    /// Everything is kept. `gradients`: where those of each tensor are added up. References outlive the branch.
    ResidualBranch(Device& device, TensorGroup& group, const ChunkShape& shape, BranchKind kind,
                   const BranchTensors& weights, const BranchTensors& gradients);

    /// `result` [activation rows x hidden] becomes x plus the branch; empty: stop short of the output matrix, for
    /// backward needs nothing beyond.
    void forward(const Tensor& x, BranchState& state, const Tensor& result) const;
    /// What selective recomputation does not keep.
    void forget_core(BranchState& state) const;

    /// `gradient` [activation rows x hidden]: of the result, becomes that of x. Gradients of norm and output bias are
    /// added here. `weights_too`: those of the other weights as well, behind the tensor ranks' sum where communication
    /// overlaps; otherwise the state keeps what they need.
    void backward_input(const Tensor& x, BranchState& state, const Tensor& gradient, bool weights_too) const;
    void backward_weight(BranchState& state) const;

  private:
    void normalize(const Tensor& x, BranchState& state) const;
    void core(BranchState& state) const;
    /// Gradient of the core's outputs becomes that of its inputs, which is returned.
    Tensor core_gradient(BranchState& state, const Tensor& outputs_gradient) const;
    void norm_gradient(const Tensor& x, const BranchState& state, const Tensor& dy, const Tensor& gradient) const;
    void weight_gradients(BranchState& state, const Tensor& result_gradient) const;
    OwnedTensor working(std::int64_t rows, std::int64_t columns) const;

    Device& device_;
    Operations& operations_;
    TensorGroup& group_;
    const scenarios::Model& model_;
    scenarios::Recompute recompute_;
    bool overlaps_;
    std::int64_t tokens_;
    std::int64_t rows_;
    BranchKind kind_;
    AttentionShape attention_;
    BranchTensors weights_;
    BranchTensors gradients_;
};

}  // namespace headway::backend
