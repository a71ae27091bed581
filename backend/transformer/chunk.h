#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backend/communicator/communicator.h"
#include "backend/device/device.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"
#include "scenarios/transfer/ownership.h"

/// The layers that one rank holds of one virtual stage: weights, forward and backward. Pre-norm decoder blocks, GPT-2
/// (Radford et al. 2019) and Llama (Touvron et al. 2023) families; tensor and sequence parallelism and selective
/// recomputation as in Megatron-LM (Shoeybi et al. 2019; Korthikanti et al. 2022).
namespace headway::backend {

struct ChunkShape {
    scenarios::Model model;
    scenarios::Layout layout;  ///< tensor, sequence_parallel, recompute are read here
    int tensor_rank = 0;
    int first_layer = 0;
    int layers = 0;
    bool embeds = false;            ///< first virtual stage: tokens in
    bool has_head = false;          ///< last virtual stage: final norm, logits and loss
    int micro_batch = 1;            ///< sequences
    std::int64_t padded_vocab = 0;  ///< rows of embedding and head over all tensor ranks (costs/parameters.h)

    std::int64_t tokens() const { return static_cast<std::int64_t>(micro_batch) * model.sequence_length; }
    /// Rows of the activations that enter and leave: with sequence parallelism each tensor rank has its part of every
    /// sequence-major row range (rows r * tokens / tensor ...).
    std::int64_t activation_rows() const { return layout.sequence_parallel ? tokens() / layout.tensor : tokens(); }
};

/// Weights and gradients of one block on this rank, in *kernel order*: the order that GEMMs want, tensor by tensor.
/// State that is owned, saved and moved is in *block order* (scenarios/transfer/ownership.h), in which a rank's part is
/// one interval; block_order.h turns one into the other. Only kLayerSplit differs between the two.
struct BlockWeights {
    scenarios::Block block;
    Tensor weights;  ///< W, contiguous, as many elements as the rank's part of the block
    /// A, the same; added to by backward. With sequence parallelism those of whole blocks (norms, row biases,
    /// positions) are this tensor rank's share, from its rows: the trainer sums them over the tensor ranks, once a
    /// step, as Megatron-LM does.
    Tensor gradients;
};

class Chunk {
  public:
    /// `tensor` is null without tensor parallelism. Both are kept. Throws std::invalid_argument for a model that it
    /// cannot train: ALiBi positions, a context-parallel layout, heads or kv_heads that the tensor degree does not
    /// divide. Weights are not initialised.
    Chunk(Device& device, const ChunkShape& shape, Communicator* tensor);
    ~Chunk();

    const ChunkShape& shape() const;
    /// In model order; a tied embedding appears in the first and in the last chunk (once where both are one chunk).
    std::span<const BlockWeights> blocks() const;
    /// Of all blocks, [1 x elements] (A): one behind the other in the same order, 0 in the gaps between them, so that a
    /// collective may take several at once. Empty without blocks.
    Tensor gradients() const;

    /// `input`: tokens [1 x tokens] (kInt32) where the chunk embeds, else activations [activation_rows x hidden] (W).
    /// `output`: activations, or empty for the last chunk, which needs `targets` [1 x tokens] instead (empty
    /// elsewhere). What backward needs of this micro-batch is kept until then; several may be in flight. `loss_scale`
    /// multiplies the gradient of each token's loss (1 / (tokens of the global batch) makes sums over replicas the
    /// mean).
    void forward(int micro_batch, const Tensor& input, const Tensor& targets, double loss_scale, const Tensor& output);
    /// `output_gradient` is empty for the last chunk, `input_gradient` for the first; else like the activations.
    void backward(int micro_batch, const Tensor& output_gradient, const Tensor& input_gradient);
    /// Zero-bubble: the two halves of backward (Qi et al. 2023).
    void backward_input(int micro_batch, const Tensor& output_gradient, const Tensor& input_gradient);
    void backward_weight(int micro_batch);
    /// Sum over this chunk's tokens of the losses since the last call (A, one element; the same on every tensor rank).
    /// Last chunk only. Waits for the device.
    double take_loss();
    /// Time spent waiting inside forward and backward for tensor collectives since the last call.
    scenarios::Duration take_exposed_communication();

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

/// Copies between the two orders; `kernel` and `block` hold this rank's part of a block of `kind` and may differ in
/// type (W and A).
void kernel_to_block_order(Device& device, const scenarios::Model& model, int tensor_degree, scenarios::BlockKind kind,
                           const Tensor& kernel, const Tensor& block);
void block_to_kernel_order(Device& device, const scenarios::Model& model, int tensor_degree, scenarios::BlockKind kind,
                           const Tensor& block, const Tensor& kernel);

/// Initial values of elements [interval) of a block, in block order: the same whatever the plan (each element is drawn
/// by its own position from the stream of `seed` and the block). GPT-2: normal with deviation 0.02, projections into
/// the residual 0.02 / sqrt(2 layers), norms 1, biases 0. Padding rows are 0.
std::vector<float> initial_weights(const scenarios::Job& job, const scenarios::Block& block,
                                   scenarios::Interval elements, std::uint64_t seed);

}  // namespace headway::backend
