#pragma once

#include <cstdint>
#include <vector>

#include "backend/device/tensor.h"
#include "scenarios/language/job.h"
#include "scenarios/transfer/ownership.h"

/// Which tensors a block holds, in the two orders in which its elements stand (backend/transformer/chunk.h).
namespace headway::backend {

/// One tensor within the period of a block, in block order.
struct BlockTensor {
    const char* name = "";
    std::int64_t first = 0;     ///< element of the period at which it begins
    std::int64_t elements = 0;  ///< of it in a period
    bool matrix = false;        ///< else a norm or a bias
};

/// A block in block order is `BlockTensors::period` elements again and again: the units of a layer's split part, the
/// rows of an embedding, positions or head; once for the others.
struct BlockTensors {
    std::int64_t period = 0;
    std::vector<BlockTensor> tensors;  ///< in order, without gaps
};
/// Split part of a layer: scenarios::split_tensors. Replicated part: norm weight and norm bias (layer norm) of the
/// attention, projection bias (where there are biases), then the same of the MLP. Final norm: weight, bias.
BlockTensors block_tensors(const scenarios::Model& model, scenarios::BlockKind kind);

enum class BranchKind : std::uint8_t { kAttention, kMlp };

/// The tensors of one residual branch on one rank, as its GEMMs take them: views into a layer's two blocks in kernel
/// order. Both matrices have a row of `hidden` elements for each of their inner columns. Absent biases are empty.
///
/// Kernel order of the split part: input weights, input biases, output weights of the attention, then of the MLP. Input
/// of the attention: all query heads of the rank, its key heads, its value heads. Input of a gated MLP: gate, then up.
struct BranchTensors {
    Tensor norm_weight;    ///< [1 x hidden]
    Tensor norm_bias;      ///< [1 x hidden], layer norm
    Tensor input_weight;   ///< [queries + 2 keys, ffn, or 2 ffn x hidden]
    Tensor input_bias;     ///< [1 x rows of input_weight]
    Tensor output_weight;  ///< [queries or ffn x hidden]: the transpose of what multiplies a column vector
    Tensor output_bias;    ///< [1 x hidden]
};
/// `split` and `replicated` hold the rank's parts of a layer's blocks, contiguous.
BranchTensors branch_tensors(const scenarios::Model& model, int tensor_degree, BranchKind branch, const Tensor& split,
                             const Tensor& replicated);

}  // namespace headway::backend
