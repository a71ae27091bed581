#pragma once

#include <cstdint>

#include "backend/device/operations.h"
#include "backend/device/tensor.h"

/// What every device checks before it computes: types, shapes and strides as backend/device/operations.h states them.
/// One function an operation, with its name and parameters. Each throws std::invalid_argument naming the operation, the
/// tensor and what is wrong with it.
namespace headway::backend {

struct OperationChecks {
    DataType working;
    DataType accumulation;

    void gemm(Transpose ta, Transpose tb, const Tensor& a, const Tensor& b, const Tensor& c) const;
    void add_bias(const Tensor& x, const Tensor& bias) const;
    void bias_gradient(const Tensor& dy, const Tensor& dbias) const;
    void layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& y, const Tensor& mean,
                    const Tensor& rstd) const;
    void layer_norm_gradient(const Tensor& dy, const Tensor& x, const Tensor& gamma, const Tensor& mean,
                             const Tensor& rstd, const Tensor& dx, const Tensor& dgamma, const Tensor& dbeta) const;
    void rms_norm(const Tensor& x, const Tensor& gamma, const Tensor& y, const Tensor& rstd) const;
    void rms_norm_gradient(const Tensor& dy, const Tensor& x, const Tensor& gamma, const Tensor& rstd, const Tensor& dx,
                           const Tensor& dgamma) const;
    void rotary(const Tensor& x, std::int64_t sequence, std::int64_t head_dim) const;
    void attention(const AttentionShape& shape, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                   const Tensor& log_sums) const;
    void attention_gradient(const AttentionShape& shape, const Tensor& dout, const Tensor& q, const Tensor& k,
                            const Tensor& v, const Tensor& out, const Tensor& log_sums, const Tensor& dq,
                            const Tensor& dk, const Tensor& dv) const;
    void gelu(const Tensor& x, const Tensor& y) const;
    void gelu_gradient(const Tensor& x, const Tensor& dy, const Tensor& dx) const;
    void swiglu(const Tensor& gate, const Tensor& up, const Tensor& y) const;
    void swiglu_gradient(const Tensor& gate, const Tensor& up, const Tensor& dy, const Tensor& dgate,
                         const Tensor& dup) const;
    void embedding(const Tensor& tokens, const Tensor& table, const Tensor& out) const;
    void embedding_gradient(const Tensor& tokens, const Tensor& dout, const Tensor& dtable) const;
    void add_positions(const Tensor& table, std::int64_t sequence, std::int64_t first_token, const Tensor& x) const;
    void positions_gradient(const Tensor& dx, std::int64_t sequence, std::int64_t first_token,
                            const Tensor& dtable) const;
    void row_maxima(const Tensor& logits, const Tensor& maxima) const;
    void exponential_sums(const Tensor& logits, const Tensor& maxima, const Tensor& targets, const Tensor& sums,
                          const Tensor& target_logits) const;
    void cross_entropy(const Tensor& logits, const Tensor& maxima, const Tensor& sums, const Tensor& targets,
                       const Tensor& target_logits, const Tensor& losses) const;
    void adamw(const AdamW& settings, const Tensor& gradient, const Tensor& parameters, const Tensor& first_moment,
               const Tensor& second_moment) const;
    void sum_of_squares(const Tensor& x, const Tensor& result) const;
    void add(const Tensor& x, const Tensor& y) const;
    void scale(const Tensor& x) const;
    void fill(const Tensor& x) const;
    void copy(const Tensor& from, const Tensor& to) const;
    void transpose(const Tensor& from, const Tensor& to) const;
};

}  // namespace headway::backend
