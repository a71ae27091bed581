#include "backend/host/kernels/matrix_product.h"

#include <cblas.h>

#include <algorithm>
#include <type_traits>

namespace headway::backend::host {

namespace {

/// One rank is one thread: more would only take cores from the other ranks of this machine.
void use_one_blas_thread() {
    static const bool done = (openblas_set_num_threads(1), true);
    static_cast<void>(done);
}

int blas_int(std::int64_t value) {
    return static_cast<int>(value);
}

}  // namespace

template <typename Real>
void matrix_product(bool transpose_a, bool transpose_b, Real alpha, Matrix<const Real> a, Matrix<const Real> b,
                    Real beta, Matrix<Real> c) {
    use_one_blas_thread();
    const CBLAS_TRANSPOSE op_a = transpose_a ? CblasTrans : CblasNoTrans;
    const CBLAS_TRANSPOSE op_b = transpose_b ? CblasTrans : CblasNoTrans;
    const int m = blas_int(c.rows), n = blas_int(c.columns), k = blas_int(transpose_a ? a.rows : a.columns);
    if (m == 0 || n == 0) return;
    if (k == 0 || alpha == Real(0)) {  // the BLAS need not read a and b, nor accept their strides
        for (std::int64_t r = 0; r < c.rows; ++r)
            std::transform(c.row(r), c.row(r) + c.columns, c.row(r),
                           [&](Real value) { return beta == Real(0) ? Real(0) : beta * value; });
        return;
    }
    // A single row or column may come with any stride; the BLAS wants at least its length.
    const int lda = blas_int(std::max(a.stride, a.columns)), ldb = blas_int(std::max(b.stride, b.columns));
    const int ldc = blas_int(std::max(c.stride, c.columns));
    if constexpr (std::is_same_v<Real, float>) {
        cblas_sgemm(CblasRowMajor, op_a, op_b, m, n, k, alpha, a.data, lda, b.data, ldb, beta, c.data, ldc);
    } else {
        cblas_dgemm(CblasRowMajor, op_a, op_b, m, n, k, alpha, a.data, lda, b.data, ldb, beta, c.data, ldc);
    }
}

template void matrix_product(bool, bool, float, Matrix<const float>, Matrix<const float>, float, Matrix<float>);
template void matrix_product(bool, bool, double, Matrix<const double>, Matrix<const double>, double, Matrix<double>);

}  // namespace headway::backend::host
