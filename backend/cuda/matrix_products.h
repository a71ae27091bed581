#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/device/operations.h"
#include "backend/device/tensor.h"

namespace headway::backend {

/// Who multiplies matrices: cuBLAS on a GPU. Arguments as of Operations::gemm, checked, nothing empty.
class MatrixProducts {
  public:
    virtual ~MatrixProducts() = default;
    virtual void product(Transpose ta, Transpose tb, double alpha, const Tensor& a, const Tensor& b, double beta,
                         const Tensor& c) = 0;
};

/// A product of row-major matrices as a library for column-major ones wants it. Memory that is read column by column
/// is the transpose, so c^T = op(b)^T op(a)^T: the operands change places, and each keeps its own flag.
struct ColumnMajorProduct {
    bool transpose_first = false;   ///< of b, the library's first operand
    bool transpose_second = false;  ///< of a
    std::int64_t m = 0, n = 0, k = 0;
    std::int64_t first_rows = 0, first_columns = 0;  ///< as stored, column-major
    std::int64_t second_rows = 0, second_columns = 0;
    std::int64_t first_leading = 0, second_leading = 0, result_leading = 0;
};

inline ColumnMajorProduct column_major(Transpose ta, Transpose tb, const Tensor& a, const Tensor& b, const Tensor& c) {
    // The stride of a single row says nothing, and may be too small for the library.
    const auto leading = [](const Tensor& tensor) { return std::max(tensor.stride, tensor.columns); };
    ColumnMajorProduct product;
    product.transpose_first = tb == Transpose::kYes;
    product.transpose_second = ta == Transpose::kYes;
    product.m = c.columns;
    product.n = c.rows;
    product.k = ta == Transpose::kYes ? a.rows : a.columns;
    product.first_rows = b.columns;
    product.first_columns = b.rows;
    product.second_rows = a.columns;
    product.second_columns = a.rows;
    product.first_leading = leading(b);
    product.second_leading = leading(a);
    product.result_leading = leading(c);
    return product;
}

}  // namespace headway::backend
