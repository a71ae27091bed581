#pragma once

#include <cstdint>

#include "backend/host/kernels/matrix.h"

/// Embedding tables and cross entropy; backend/device/operations.h says what each computes.
namespace headway::backend::host {

template <typename Real>
void embedding(const std::int32_t* tokens, Matrix<const Real> table, std::int64_t first_row, Matrix<Real> out);
template <typename Real>
void embedding_gradient(const std::int32_t* tokens, Matrix<const Real> dout, std::int64_t first_row,
                        Matrix<Real> dtable);
template <typename Real>
void add_positions(Matrix<const Real> table, std::int64_t sequence, std::int64_t first_token, Matrix<Real> x);
template <typename Real>
void positions_gradient(Matrix<const Real> dx, std::int64_t sequence, std::int64_t first_token, Matrix<Real> dtable);

template <typename Real>
void row_maxima(Matrix<const Real> logits, Real* maxima);
template <typename Real>
void exponential_sums(Matrix<const Real> logits, const Real* maxima, const std::int32_t* targets,
                      std::int64_t first_column, Real* sums, Real* target_logits);
template <typename Real>
void cross_entropy(Matrix<Real> logits, const Real* maxima, const Real* sums, const std::int32_t* targets,
                   const Real* target_logits, std::int64_t first_column, double scale, Real* losses);

}  // namespace headway::backend::host
