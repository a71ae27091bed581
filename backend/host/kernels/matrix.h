#pragma once

#include <cstdint>

/// Kernels of the host, over plain memory. They know no device and check nothing: HostOperations has done so. Compiled
/// as a library of their own, optimised in every configuration.
namespace headway::backend::host {

/// A row-major matrix in memory that somebody else owns.
template <typename Real>
struct Matrix {
    Real* data = nullptr;
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t stride = 0;

    Real* row(std::int64_t r) const { return data + r * stride; }
    operator Matrix<const Real>() const { return {data, rows, columns, stride}; }
};

}  // namespace headway::backend::host
