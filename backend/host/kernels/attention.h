#pragma once

#include <cstdint>
#include <vector>

#include "backend/host/kernels/matrix.h"

/// Causal attention and rotary embedding; backend/device/operations.h says what each computes.
namespace headway::backend::host {

template <typename Real>
struct AttentionTask {
    std::int64_t batch, sequence, heads, kv_heads, head_dim;
    Matrix<const Real> q, k, v;
};

/// `scratch` keeps the strips of scores, so that they are allocated once.
template <typename Real>
void attention(const AttentionTask<Real>& task, Matrix<Real> out, Matrix<Real> log_sums, std::vector<Real>& scratch);
template <typename Real>
void attention_gradient(const AttentionTask<Real>& task, Matrix<const Real> dout, Matrix<const Real> out,
                        Matrix<const Real> log_sums, Matrix<Real> dq, Matrix<Real> dk, Matrix<Real> dv,
                        std::vector<Real>& scratch);
template <typename Real>
void rotary(Matrix<Real> x, std::int64_t sequence, std::int64_t head_dim, double base, bool inverse);

}  // namespace headway::backend::host
