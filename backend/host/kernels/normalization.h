#pragma once

#include "backend/host/kernels/matrix.h"

/// Layer norm and RMS norm; backend/device/operations.h says what each computes. Statistics have one value a row.
namespace headway::backend::host {

template <typename Real>
void layer_norm(Matrix<const Real> x, const Real* gamma, const Real* beta, double epsilon, Matrix<Real> y, Real* mean,
                Real* rstd);
template <typename Real>
void layer_norm_gradient(Matrix<const Real> dy, Matrix<const Real> x, const Real* gamma, const Real* mean,
                         const Real* rstd, Matrix<Real> dx, Real* dgamma, Real* dbeta);
template <typename Real>
void rms_norm(Matrix<const Real> x, const Real* gamma, double epsilon, Matrix<Real> y, Real* rstd);
template <typename Real>
void rms_norm_gradient(Matrix<const Real> dy, Matrix<const Real> x, const Real* gamma, const Real* rstd,
                       Matrix<Real> dx, Real* dgamma);

}  // namespace headway::backend::host
