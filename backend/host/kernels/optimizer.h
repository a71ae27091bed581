#pragma once

#include <cstdint>

#include "backend/host/kernels/matrix.h"

namespace headway::backend::host {

/// One AdamW update with everything that is the same for all parameters worked out beforehand:
///   m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2,  p = decay p - rate m / (sqrt(v) root_scale +
///   epsilon)
template <typename Real>
struct AdamWFactors {
    Real beta1, beta2;
    Real fresh1, fresh2;  ///< 1 - beta, from the unrounded beta
    Real gradient_scale;
    Real rate;        ///< learning rate / (1 - beta1^step)
    Real root_scale;  ///< 1 / sqrt(1 - beta2^step)
    Real epsilon;
    Real decay;  ///< 1 - learning rate * weight decay
};

template <typename Real>
void adamw(const AdamWFactors<Real>& factors, const Real* gradient, Real* parameters, Real* first_moment,
           Real* second_moment, std::int64_t count);

template <typename Real>
double sum_of_squares(Matrix<const Real> x);

}  // namespace headway::backend::host
