#include "backend/cuda/kernels/elements.cuh"
#include "backend/cuda/kernels/kernels.h"

namespace headway::backend::cuda {

namespace {

constexpr int kSide = 32;  // of a tile of c
constexpr int kDown = 8;   // threads down; each has kSide / kDown rows of the tile

/// Element (row, column) of a matrix that may be turned.
template <typename T>
struct Turned {
    View<T> of;
    bool turned;
    __device__ float at(std::int64_t row, std::int64_t column) const {
        return to_float(turned ? of.data[column * of.stride + row] : of.data[row * of.stride + column]);
    }
};

template <typename T, typename To>
__global__ void product_kernel(std::int64_t rows, std::int64_t columns, std::int64_t inner, float alpha, Turned<T> a,
                               Turned<T> b, float beta, View<To> c) {
    __shared__ float of_a[kSide][kSide + 1];
    __shared__ float of_b[kSide][kSide + 1];
    const std::int64_t top = static_cast<std::int64_t>(blockIdx.y) * kSide,
                       left = static_cast<std::int64_t>(blockIdx.x) * kSide;
    const int x = threadIdx.x;
    float sums[kSide / kDown] = {};
    for (std::int64_t first = 0; first < inner; first += kSide) {
        for (int r = threadIdx.y; r < kSide; r += kDown) {
            of_a[r][x] = top + r < rows && first + x < inner ? a.at(top + r, first + x) : 0.0f;
            of_b[r][x] = first + r < inner && left + x < columns ? b.at(first + r, left + x) : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < kSide; ++k)
#pragma unroll
            for (int i = 0; i < kSide / kDown; ++i) sums[i] += of_a[threadIdx.y + i * kDown][k] * of_b[k][x];
        __syncthreads();
    }
    for (int i = 0; i < kSide / kDown; ++i) {
        const std::int64_t row = top + threadIdx.y + i * kDown, column = left + x;
        if (row >= rows || column >= columns) continue;
        To* const to = c.data + row * c.stride + column;
        const float before = beta == 0.0f ? 0.0f : beta * to_float(*to);
        *to = from_float<To>(alpha * sums[i] + before);
    }
}

}  // namespace

void plain_product(Stream stream, Transpose ta, Transpose tb, double alpha, const Tensor& a, const Tensor& b,
                   double beta, const Tensor& c) {
    if (c.empty()) return;
    const std::int64_t inner = ta == Transpose::kYes ? a.rows : a.columns;
    Geometry geometry;
    geometry.block = {kSide, kDown, 1};
    geometry.grid.x = static_cast<unsigned>(divided_up(c.columns, kSide));
    geometry.grid.y = static_cast<unsigned>(divided_up(c.rows, kSide));
    by_type(a.type, [&](auto type) {
        by_type(c.type, [&](auto result) {
            using T = decltype(type);
            using To = decltype(result);
            if constexpr (sizeof(T) <= sizeof(To)) {
                launch("gemm", product_kernel<T, To>, geometry, stream, c.rows, c.columns, inner,
                       static_cast<float>(alpha), Turned<T>{view<T>(a), ta == Transpose::kYes},
                       Turned<T>{view<T>(b), tb == Transpose::kYes}, static_cast<float>(beta), view<To>(c));
            }
        });
    });
}

}  // namespace headway::backend::cuda
