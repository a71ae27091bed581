#include "backend/cuda/kernels/reductions.cuh"

#include "backend/cuda/kernels/kernels.h"

namespace headway::backend::cuda {

namespace {

template <typename T>
struct ColumnTerms {
    static constexpr int kOutputs = 1;
    View<T> x;
    template <int N>
    __device__ void add(std::int64_t row, std::int64_t column, Values<N>* sums) const {
        const Values<N> values = x.template load<N>(row, column);
        for (int i = 0; i < N; ++i) sums[0].at[i] += values.at[i];
    }
};

constexpr int kSquareBlocks = 1024;

__device__ double block_sum(double value) {
    __shared__ double parts[kBlockThreads / 32];
    value = warp_sum(value);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = 0.0;
    for (int i = 0; i < kBlockThreads / 32; ++i) value += parts[i];
    return value;
}

template <int N, typename T>
__global__ void squares_kernel(View<T> x, std::int64_t packs_of_row, std::int64_t packs, double* parts) {
    double sum = 0.0;
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; at < packs; at += step) {
        const std::int64_t row = packs_of_row == packs ? 0 : at / packs_of_row;
        const Values<N> values = x.template load<N>(row, (at - row * packs_of_row) * N);
        for (int i = 0; i < N; ++i) sum += static_cast<double>(values.at[i]) * static_cast<double>(values.at[i]);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ void square_parts_kernel(const double* parts, int count, double* result) {
    double sum = 0.0;
    for (int i = threadIdx.x; i < count; i += blockDim.x) sum += parts[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) *result += sum;
}

}  // namespace

std::int64_t column_strips_bytes(std::int64_t rows, std::int64_t columns, int tensors) {
    return strips_of_rows(rows) * columns * tensors * static_cast<std::int64_t>(sizeof(float));
}

void bias_gradient(Stream stream, const Tensor& dy, const Tensor& dbias, void* strips) {
    by_type(dy.type, [&](auto type) {
        using T = decltype(type);
        add_column_sums("bias_gradient", stream, dy.rows, dy.columns, common_width({dy}), ColumnTerms<T>{view<T>(dy)},
                        static_cast<float*>(strips), static_cast<float*>(dbias.data));
    });
}

std::int64_t square_parts_bytes() {
    return kSquareBlocks * static_cast<std::int64_t>(sizeof(double));
}

void sum_of_squares(Stream stream, const Tensor& x, const Tensor& result, void* parts) {
    if (x.empty()) return;
    const Tensor flat = x.contiguous() ? flattened(x) : x;
    const int width = common_width({flat});
    const std::int64_t packs_of_row = flat.columns / width, packs = flat.rows * packs_of_row;
    Geometry geometry;
    geometry.block = {kBlockThreads, 1, 1};
    geometry.grid.x = static_cast<unsigned>(std::min<std::int64_t>(divided_up(packs, kBlockThreads), kSquareBlocks));
    double* const sums = static_cast<double*>(parts);
    by_type(x.type, [&](auto type) {
        using T = decltype(type);
        if (width == kWidth) {
            launch("sum_of_squares", squares_kernel<kWidth, T>, geometry, stream, view<T>(flat), packs_of_row, packs,
                   sums);
        } else {
            launch("sum_of_squares", squares_kernel<1, T>, geometry, stream, view<T>(flat), packs_of_row, packs, sums);
        }
    });
    Geometry after;
    after.block = {kBlockThreads, 1, 1};
    launch("sum_of_squares", square_parts_kernel, after, stream, sums, static_cast<int>(geometry.grid.x),
           static_cast<double*>(result.data));
}

}  // namespace headway::backend::cuda
