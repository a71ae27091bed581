#pragma once

#include <cmath>

#include "backend/cuda/kernels/elements.cuh"

/// Sums along rows and down columns, in an order that is fixed by the shape.
namespace headway::backend::cuda {

/// Over the threads that share a row (threadIdx.x of kThreads): every one gets the result.
template <int kThreads>
__device__ float row_sum(float value) {
    value = warp_sum(value);
    if constexpr (kThreads > 32) {
        __shared__ float parts[kThreads / 32];
        __syncthreads();  // what the last call left has been read
        if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
        __syncthreads();
        value = 0.0f;
#pragma unroll
        for (int i = 0; i < kThreads / 32; ++i) value += parts[i];
    }
    return value;
}
template <int kThreads>
__device__ float row_maximum(float value) {
    value = warp_maximum(value);
    if constexpr (kThreads > 32) {
        __shared__ float parts[kThreads / 32];
        __syncthreads();
        if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
        __syncthreads();
        value = parts[0];
#pragma unroll
        for (int i = 1; i < kThreads / 32; ++i) value = fmaxf(value, parts[i]);
    }
    return value;
}

/// The row of this thread; kernels over rows are launched with rows_geometry.
__device__ inline std::int64_t own_row() {
    return static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
}

constexpr int kStripColumns = 32;  // threads along the columns
constexpr int kStripLanes = 8;     // threads down the rows

/// Terms has kOutputs and `template <int N> __device__ void add(row, column, Values<N>* sums) const`. A block sums one
/// strip of rows; strips [strips x outputs x columns].
template <int N, typename Terms>
__global__ void column_strips_kernel(std::int64_t rows, std::int64_t columns, Terms terms, float* strips) {
    __shared__ float shared[Terms::kOutputs][kStripLanes][kStripColumns * N];
    const std::int64_t column = (static_cast<std::int64_t>(blockIdx.x) * kStripColumns + threadIdx.x) * N;
    const std::int64_t of_strip = (rows + gridDim.y - 1) / gridDim.y;
    const std::int64_t first = blockIdx.y * of_strip;
    const std::int64_t end = first + of_strip < rows ? first + of_strip : rows;
    Values<N> sums[Terms::kOutputs];
#pragma unroll
    for (int o = 0; o < Terms::kOutputs; ++o)
#pragma unroll
        for (int i = 0; i < N; ++i) sums[o].at[i] = 0.0f;
    if (column < columns)
        for (std::int64_t row = first + threadIdx.y; row < end; row += kStripLanes)
            terms.template add<N>(row, column, sums);
#pragma unroll
    for (int o = 0; o < Terms::kOutputs; ++o)
#pragma unroll
        for (int i = 0; i < N; ++i) shared[o][threadIdx.y][threadIdx.x * N + i] = sums[o].at[i];
    __syncthreads();
    const int thread = threadIdx.y * kStripColumns + threadIdx.x;
    for (int at = thread; at < Terms::kOutputs * kStripColumns * N; at += kStripColumns * kStripLanes) {
        const int output = at / (kStripColumns * N), inner = at % (kStripColumns * N);
        const std::int64_t outer = static_cast<std::int64_t>(blockIdx.x) * kStripColumns * N + inner;
        if (outer >= columns) continue;
        float sum = 0.0f;
        for (int lane = 0; lane < kStripLanes; ++lane) sum += shared[output][lane][inner];
        strips[(static_cast<std::int64_t>(blockIdx.y) * Terms::kOutputs + output) * columns + outer] = sum;
    }
}

/// Adds the strips, in order, to the outputs (the second may be null).
template <int kOutputs>
__global__ void column_sums_kernel(std::int64_t strip_count, std::int64_t columns, const float* strips, float* first,
                                   float* second) {
    const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= kOutputs * columns) return;
    float sum = 0.0f;
    for (std::int64_t strip = 0; strip < strip_count; ++strip) sum += strips[strip * kOutputs * columns + at];
    float* output = at < columns ? first : second;
    output[at % columns] += sum;
}

template <typename Terms>
void add_column_sums(const char* name, Stream stream, std::int64_t rows, std::int64_t columns, int width,
                     const Terms& terms, float* strips, float* first, float* second = nullptr) {
    if (rows == 0 || columns == 0) return;
    const std::int64_t strip_count = strips_of_rows(rows);
    Geometry geometry;
    geometry.block = {kStripColumns, kStripLanes, 1};
    geometry.grid.x = static_cast<unsigned>(divided_up(columns, static_cast<std::int64_t>(kStripColumns) * width));
    geometry.grid.y = static_cast<unsigned>(strip_count);
    if (width == kWidth) {
        launch(name, column_strips_kernel<kWidth, Terms>, geometry, stream, rows, columns, terms, strips);
    } else {
        launch(name, column_strips_kernel<1, Terms>, geometry, stream, rows, columns, terms, strips);
    }
    Geometry after;
    after.block = {kBlockThreads, 1, 1};
    after.grid.x = static_cast<unsigned>(divided_up(Terms::kOutputs * columns, kBlockThreads));
    launch(name, column_sums_kernel<Terms::kOutputs>, after, stream, strip_count, columns, strips, first, second);
}

}  // namespace headway::backend::cuda
