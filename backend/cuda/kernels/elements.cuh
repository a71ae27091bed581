#pragma once

#include "backend/cuda/kernels/dialect.cuh"
#include "backend/device/tensor.h"

/// Element-wise kernels: an operation is a struct with `template <int N> __device__ void at(row, column) const`, called
/// for every N neighbouring elements.
namespace headway::backend::cuda {

template <typename T>
View<T> view(const Tensor& tensor) {
    return {static_cast<T*>(tensor.data), tensor.stride};
}

/// Calls `with` with a value of the type that `type` names: Bf16 or float.
template <typename With>
void by_type(DataType type, const With& with) {
    if (type == DataType::kBfloat16) {
        with(Bf16{});
    } else {
        with(float{});
    }
}

template <int N, typename Operation>
__global__ void elements_kernel(std::int64_t rows, std::int64_t packs, Operation operation) {
    const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.y) * blockDim.y + threadIdx.y;
    const std::int64_t first_pack = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const std::int64_t row_step = static_cast<std::int64_t>(gridDim.y) * blockDim.y;
    const std::int64_t pack_step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t row = first_row; row < rows; row += row_step)
        for (std::int64_t pack = first_pack; pack < packs; pack += pack_step) operation.template at<N>(row, pack * N);
}

template <typename Operation>
void over_elements(const char* name, Stream stream, std::int64_t rows, std::int64_t columns, int width,
                   const Operation& operation) {
    if (rows == 0 || columns == 0) return;
    if (width == kWidth) {
        const std::int64_t packs = columns / kWidth;
        launch(name, elements_kernel<kWidth, Operation>, elements_geometry(rows, packs), stream, rows, packs,
               operation);
    } else {
        launch(name, elements_kernel<1, Operation>, elements_geometry(rows, columns), stream, rows, columns, operation);
    }
}

/// Where the operation does not care which row or column an element is in and all tensors are contiguous: as one row.
inline Tensor flattened(const Tensor& tensor) {
    return {tensor.data, tensor.type, 1, tensor.count(), tensor.count()};
}

/// `make` gives the operation for tensors, flattened where possible.
template <typename Make>
void over_alike(const char* name, Stream stream, std::initializer_list<Tensor> tensors, const Make& make) {
    Tensor all[8];
    int count = 0;
    bool flat = true;
    for (const Tensor& tensor : tensors) {
        all[count++] = tensor;
        flat = flat && tensor.contiguous();
    }
    if (flat)
        for (int i = 0; i < count; ++i) all[i] = flattened(all[i]);
    int width = kWidth;
    for (int i = 0; i < count; ++i) width = common_width({all[i]}) < width ? 1 : width;
    over_elements(name, stream, all[0].rows, all[0].columns, width, make(all));
}

}  // namespace headway::backend::cuda
