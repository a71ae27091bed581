#pragma once

#include <cstdint>

#include "backend/cuda/kernels/stream.h"
#include "backend/device/operations.h"
#include "backend/device/tensor.h"

/// The operations as kernels: launched on `stream`, not waited for. Arguments have been checked
/// (backend/device/operation_checks.h) and are what backend/device/operations.h says; bfloat16 or float32 where it says
/// W, float32 where it says A. None uses an atomic sum: the same values give the same bits. Each throws BackendError
/// when a launch fails.
namespace headway::backend::cuda {

// ---- elementwise.cu
void add_bias(Stream stream, const Tensor& x, const Tensor& bias);
void gelu(Stream stream, const Tensor& x, const Tensor& y);
void gelu_gradient(Stream stream, const Tensor& x, const Tensor& dy, const Tensor& dx);
void swiglu(Stream stream, const Tensor& gate, const Tensor& up, const Tensor& y);
void swiglu_gradient(Stream stream, const Tensor& gate, const Tensor& up, const Tensor& dy, const Tensor& dgate,
                     const Tensor& dup);
/// `turns`: [sequence x head_dim / 2] pairs (cosine, sine) of float.
void rotary(Stream stream, const Tensor& x, std::int64_t sequence, std::int64_t head_dim, const float* turns,
            bool inverse);
void adamw(Stream stream, const AdamW& settings, const Tensor& gradient, const Tensor& parameters,
           const Tensor& first_moment, const Tensor& second_moment);

// ---- moving.cu
void add(Stream stream, const Tensor& x, const Tensor& y);
void scale(Stream stream, const Tensor& x, double factor);
void fill(Stream stream, const Tensor& x, double value);
void copy(Stream stream, const Tensor& from, const Tensor& to);
void transpose(Stream stream, const Tensor& from, const Tensor& to);

// ---- reductions.cu
/// Bytes of `strips` that a sum down `columns` columns of so many tensors needs.
std::int64_t column_strips_bytes(std::int64_t rows, std::int64_t columns, int tensors);
void bias_gradient(Stream stream, const Tensor& dy, const Tensor& dbias, void* strips);
/// Bytes of `parts` of sum_of_squares.
std::int64_t square_parts_bytes();
void sum_of_squares(Stream stream, const Tensor& x, const Tensor& result, void* parts);

// ---- normalization.cu; a null mean means RMS norm (then no beta and no dbeta)
void normalize(Stream stream, const Tensor& x, const Tensor& gamma, const Tensor* beta, double epsilon, const Tensor& y,
               const Tensor* mean, const Tensor& rstd);
void normalize_gradient(Stream stream, const Tensor& dy, const Tensor& x, const Tensor& gamma, const Tensor* mean,
                        const Tensor& rstd, const Tensor& dx, const Tensor& dgamma, const Tensor* dbeta, void* strips);

// ---- vocabulary.cu
void embedding(Stream stream, const Tensor& tokens, const Tensor& table, std::int64_t first_row, const Tensor& out);
void embedding_gradient(Stream stream, const Tensor& tokens, const Tensor& dout, std::int64_t first_row,
                        const Tensor& dtable);
void add_positions(Stream stream, const Tensor& table, std::int64_t sequence, std::int64_t first_token,
                   const Tensor& x);
void positions_gradient(Stream stream, const Tensor& dx, std::int64_t sequence, std::int64_t first_token,
                        const Tensor& dtable);
void row_maxima(Stream stream, const Tensor& logits, const Tensor& maxima);
void exponential_sums(Stream stream, const Tensor& logits, const Tensor& maxima, const Tensor& targets,
                      std::int64_t first_column, const Tensor& sums, const Tensor& target_logits);
void cross_entropy(Stream stream, const Tensor& logits, const Tensor& maxima, const Tensor& sums, const Tensor& targets,
                   const Tensor& target_logits, std::int64_t first_column, double scale, const Tensor& losses);

// ---- attention.cu and tile_attention.cu
struct AttentionTensors {
    Tensor q, k, v, out, log_sums;
};
struct AttentionGradients {
    Tensor dout, dq, dk, dv;
    float* products;  ///< room for [batch * heads x sequence] float
};
/// Whether the kernels over tensor cores take it: bfloat16, heads of up to 128 in whole packs, aligned rows.
bool tiles_fit(const AttentionShape& shape, const AttentionTensors& tensors);
bool tiles_fit(const AttentionShape& shape, const AttentionTensors& tensors, const AttentionGradients& gradients);
void tile_attention(Stream stream, const AttentionShape& shape, const AttentionTensors& tensors);
void tile_attention_gradient(Stream stream, const AttentionShape& shape, const AttentionTensors& tensors,
                             const AttentionGradients& gradients);
/// A warp a row, in float32: any type, strides, and heads of up to kMostHeadDim.
inline constexpr std::int64_t kMostHeadDim = 256;
void row_attention(Stream stream, const AttentionShape& shape, const AttentionTensors& tensors);
void row_attention_gradient(Stream stream, const AttentionShape& shape, const AttentionTensors& tensors,
                            const AttentionGradients& gradients);
/// products [batch * heads x sequence] = row sums of dout * out, head by head.
void output_products(Stream stream, const AttentionShape& shape, const Tensor& dout, const Tensor& out,
                     float* products);

// ---- product.cu
/// The product for what cuBLAS has no kernel for: any stride and alignment, without tensor cores.
void plain_product(Stream stream, Transpose ta, Transpose tb, double alpha, const Tensor& a, const Tensor& b,
                   double beta, const Tensor& c);

}  // namespace headway::backend::cuda
