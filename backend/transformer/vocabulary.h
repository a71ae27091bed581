#pragma once

#include <cstdint>

#include "backend/device/device.h"
#include "backend/transformer/chunk.h"
#include "backend/transformer/owned_tensor.h"
#include "backend/transformer/tensor_group.h"

/// Both ends of the model, with the vocabulary's rows split over the tensor ranks (Shoeybi et al. 2019).
namespace headway::backend {

/// Tokens in, activations out: rows of the embedding, and learned positions where there are any.
class TokenEmbedding {
  public:
    /// `table`, `table_gradient`: this rank's rows of the embedding. Those of the positions are empty where the model
    /// has none.
    TokenEmbedding(Device& device, TensorGroup& group, const ChunkShape& shape, const Tensor& table,
                   const Tensor& table_gradient, const Tensor& positions, const Tensor& positions_gradient);

    /// `result` [activation rows x hidden]
    void forward(const Tensor& tokens, const Tensor& result) const;
    void backward(const Tensor& tokens, const Tensor& gradient) const;

  private:
    Device& device_;
    Operations& operations_;
    TensorGroup& group_;
    std::int64_t sequence_;
    std::int64_t rows_;
    Tensor table_, table_gradient_, positions_, positions_gradient_;
};

struct HeadState {
    OwnedTensor mean;        ///< of the final norm, which is a layer norm
    OwnedTensor reciprocal;  ///< of the final norm
    OwnedTensor normal;      ///< [activation rows x hidden]: its output
    OwnedTensor logits;      ///< [tokens x columns of this rank]; after forward their gradient
};

/// Final norm, logits and loss. Padding rows of the table give no logits: they take no part in the softmax.
class VocabularyHead {
  public:
    /// `norm`, `norm_gradient`: [1 x all] of the final norm. `table`: this rank's rows of the head, or of the embedding
    /// that it is tied to.
    VocabularyHead(Device& device, TensorGroup& group, const ChunkShape& shape, const Tensor& norm,
                   const Tensor& norm_gradient, const Tensor& table, const Tensor& table_gradient);

    /// Final norm and logits, in `state`.
    void logits(const Tensor& x, HeadState& state) const;
    /// The same, and what follows from the targets: losses, and in place of the logits their gradient.
    void forward(const Tensor& x, const Tensor& targets, double loss_scale, HeadState& state);
    /// `gradient` [activation rows x hidden]: of x. Adds the norm's gradient; `weights_too`: the table's as well.
    void backward_input(const Tensor& x, HeadState& state, const Tensor& gradient, bool weights_too) const;
    void backward_weight(HeadState& state) const;
    double take_loss();

  private:
    void compute_losses(const Tensor& logits, const Tensor& targets, double loss_scale);
    void table_gradient(HeadState& state) const;
    OwnedTensor working(std::int64_t rows, std::int64_t columns) const;

    Device& device_;
    Operations& operations_;
    TensorGroup& group_;
    scenarios::Model model_;
    bool overlaps_;
    std::int64_t tokens_;
    std::int64_t rows_;
    std::int64_t first_token_;  ///< of this rank's rows of the table
    std::int64_t columns_;      ///< of them that are tokens
    Tensor norm_weight_, norm_bias_, norm_weight_gradient_, norm_bias_gradient_;
    Tensor table_, table_gradient_;  ///< without padding
    OwnedTensor loss_sums_;          ///< [1 x tokens]: of the losses since they were taken
};

}  // namespace headway::backend
