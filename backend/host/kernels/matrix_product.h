#pragma once

#include "backend/host/kernels/matrix.h"

namespace headway::backend::host {

/// c = alpha op(a) op(b) + beta c by the BLAS, on the calling thread alone; op transposes where it says so. c is not
/// read where beta is 0. Sizes and strides fit a 32-bit int (HostOperations has checked).
template <typename Real>
void matrix_product(bool transpose_a, bool transpose_b, Real alpha, Matrix<const Real> a, Matrix<const Real> b,
                    Real beta, Matrix<Real> c);

}  // namespace headway::backend::host
