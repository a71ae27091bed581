#pragma once

#include "backend/cuda/kernels/dialect.cuh"

/// Tiles in shared memory and products of them on tensor cores (mma.sync m16n8k16, bfloat16 in, float32 out), for one
/// warp. Which lane holds what is stated in the PTX ISA, "Matrix fragments for mma.m16n8k16": with g = lane / 4 and
/// t = lane % 4,
///     a (16 x 16): a0 row g, columns 2t, 2t+1; a1 row g+8; a2, a3 the same with columns + 8
///     b (16 x 8):  b0 rows 2t, 2t+1, column g; b1 rows + 8
///     c (16 x 8):  c0, c1 row g, columns 2t, 2t+1; c2, c3 row g+8
namespace headway::backend::cuda {

#if defined(__CUDACC__)
__device__ inline void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Four 8 x 8 matrices; lane i names row i % 8 of matrix i / 8. Lane l receives of each: row l / 4, columns 2 (l % 4)
/// and the next; transposed: rows 2 (l % 4) and the next, column l / 4.
__device__ inline void load_matrices(std::uint32_t (&to)[4], const Bf16* row) {
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
}
__device__ inline void load_matrices_transposed(std::uint32_t (&to)[4], const Bf16* row) {
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
}

/// 16 bytes into shared memory, beside what the threads do; zeros where there is nothing.
__device__ inline void copy_async(Bf16* to, const Bf16* from, bool there) {
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(there ? 16 : 0) : "memory");
}
__device__ inline void commit_copies() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Until at most `kGroups` of the last commits of this thread are under way.
template <int kGroups>
__device__ inline void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
}
#endif

__device__ inline std::uint32_t packed(float low, float high) {
    const Pack<Bf16, 2> pair = {{from_float<Bf16>(low), from_float<Bf16>(high)}};
    std::uint32_t bits;
    memcpy(&bits, &pair, sizeof bits);
    return bits;
}

/// Elements from row to row of a tile for heads of kHead: 16 bytes more than the row, so that the eight rows of a
/// matrix begin in different banks.
template <int kHead>
inline constexpr int kTileStride = kHead + 8;

/// Rows [first, first + kRows) of a head into a tile; zeros from row `limit` and column `head_dim` on. Threads of a
/// whole block take part.
template <int kRows, int kHead>
__device__ inline void load_tile(Bf16* tile, const Bf16* head, std::int64_t stride, int first, int limit,
                                 int head_dim) {
    constexpr int kPacks = kHead / 8;
    for (int i = threadIdx.x; i < kRows * kPacks; i += blockDim.x) {
        const int row = i / kPacks, column = i % kPacks * 8;
        const bool there = first + row < limit && column < head_dim;
        const Bf16* from = there ? head + (first + row) * stride + column : head;
        copy_async(tile + row * kTileStride<kHead> + column, from, there);
    }
}

/// c [16 x kRows] = a b^T: 16 rows of tile a by the kRows rows of tile b.
template <int kHead, int kRows>
__device__ inline void multiply_rows(float (&c)[kRows / 8][4], const Bf16* a, const Bf16* b) {
    const int lane = threadIdx.x % 32;
    const Bf16* const a_row = a + (lane % 16) * kTileStride<kHead> + lane / 16 * 8;
    const Bf16* const b_row = b + (lane % 8 + lane / 16 * 8) * kTileStride<kHead> + lane / 8 % 2 * 8;
#pragma unroll
    for (int i = 0; i < kRows / 8; ++i)
#pragma unroll
        for (int k = 0; k < 4; ++k) c[i][k] = 0.0f;
#pragma unroll
    for (int k = 0; k < kHead; k += 16) {
        std::uint32_t of_a[4];
        load_matrices(of_a, a_row + k);
#pragma unroll
        for (int n = 0; n < kRows; n += 16) {
            std::uint32_t of_b[4];
            load_matrices(of_b, b_row + n * kTileStride<kHead> + k);
            multiply_add(c[n / 8], of_a, of_b[0], of_b[1]);
            multiply_add(c[n / 8 + 1], of_a, of_b[2], of_b[3]);
        }
    }
}

/// c [16 x kHead] += p b: p [16 x kRows] as a product left it, rounded to bfloat16, by tile b of kRows rows.
template <int kHead, int kRows>
__device__ inline void multiply_columns(float (&c)[kHead / 8][4], const float (&p)[kRows / 8][4], const Bf16* b) {
    const int lane = threadIdx.x % 32;
    const Bf16* const b_row = b + (lane % 16) * kTileStride<kHead> + lane / 16 * 8;
#pragma unroll
    for (int k = 0; k < kRows; k += 16) {
        const float(&low)[4] = p[k / 8];
        const float(&high)[4] = p[k / 8 + 1];
        const std::uint32_t of_p[4] = {packed(low[0], low[1]), packed(low[2], low[3]), packed(high[0], high[1]),
                                       packed(high[2], high[3])};
#pragma unroll
        for (int n = 0; n < kHead; n += 16) {
            std::uint32_t of_b[4];
            load_matrices_transposed(of_b, b_row + k * kTileStride<kHead> + n);
            multiply_add(c[n / 8], of_p, of_b[0], of_b[1]);
            multiply_add(c[n / 8 + 1], of_p, of_b[2], of_b[3]);
        }
    }
}

}  // namespace headway::backend::cuda
