#include <cmath>
#include <type_traits>

#include "backend/cuda/kernels/elements.cuh"
#include "backend/cuda/kernels/kernels.h"
#include "backend/cuda/kernels/tensor_core.cuh"

/// Attention in tiles that stay on the chip (Dao et al. 2022, FlashAttention; Dao 2023, the order of loops of its
/// second version). A block of four warps has a tile of 64 rows, a warp 16 of them. The gradient is two kernels, one by
/// keys and one by queries: scores are computed twice, and no sum depends on which block comes first.
namespace headway::backend::cuda {

namespace {

constexpr int kWarps = 4;
constexpr int kTileRows = 16 * kWarps;
constexpr float kLog2OfE = 1.4426950408889634f;
constexpr float kLn2 = 0.6931471805599453f;
/// Rows of the tile that a block goes through: fewer where wide heads leave fewer registers.
template <int kHead>
inline constexpr int kStepRows = kHead <= 64 ? 64 : 32;

struct TileTask {
    int sequence, heads, kv_heads, head_dim;
    float scale;

    template <typename T>
    __device__ const Bf16* head_of(const View<T>& of, std::int64_t batch, int head) const {
        return of.data + batch * sequence * of.stride + static_cast<std::int64_t>(head) * head_dim;
    }
};

/// This warp's 16 rows, as a product left them, to rows [first, limit) of a head.
template <int kHead>
__device__ void store_tile(Bf16* head, std::int64_t stride, const float (&c)[kHead / 8][4], int first, int limit,
                           int head_dim, float upper_factor, float lower_factor) {
    const int lane = threadIdx.x % 32, row = first + lane / 4;
#pragma unroll
    for (int n = 0; n < kHead / 8; ++n) {
        const int column = n * 8 + lane % 4 * 2;
        if (column >= head_dim) continue;
        const std::uint32_t upper = packed(c[n][0] * upper_factor, c[n][1] * upper_factor),
                            lower = packed(c[n][2] * lower_factor, c[n][3] * lower_factor);
        if (row < limit) memcpy(head + row * stride + column, &upper, sizeof upper);
        if (row + 8 < limit) memcpy(head + (row + 8) * stride + column, &lower, sizeof lower);
    }
}

template <int kColumns>
__device__ void clear(float (&c)[kColumns][4]) {
#pragma unroll
    for (int n = 0; n < kColumns; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) c[n][i] = 0.0f;
}

/// Over the four lanes that share rows of a product.
__device__ float quad_sum(float value) {
    value += __shfl_xor_sync(0xffffffffu, value, 1);
    return value + __shfl_xor_sync(0xffffffffu, value, 2);
}
__device__ float quad_maximum(float value) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 1));
    return fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 2));
}

template <int kHead>
__global__ void __launch_bounds__(32 * kWarps)
    tile_attention_kernel(TileTask task, View<Bf16> q, View<Bf16> k, View<Bf16> v, View<Bf16> out,
                          View<float> log_sums) {
    constexpr int kRows = kStepRows<kHead>;
    Bf16* const q_tile = reinterpret_cast<Bf16*>(dynamic_shared());
    Bf16* const k_tile = q_tile + kTileRows * kTileStride<kHead>;
    Bf16* const v_tile = k_tile + kRows * kTileStride<kHead>;
    // Late queries see most keys: they come first, so that no long block is left at the end.
    const int first = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kTileRows, head = blockIdx.y;
    const std::int64_t batch = blockIdx.z;
    const int kv_head = head / (task.heads / task.kv_heads);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row = first + warp * 16 + lane / 4;  // and row + 8
    const float to_log2 = task.scale * kLog2OfE;

    load_tile<kTileRows, kHead>(q_tile, task.head_of(q, batch, head), q.stride, first, task.sequence, task.head_dim);
    float sums[kHead / 8][4];
    clear(sums);
    float maximum[2] = {-INFINITY, -INFINITY}, denominator[2] = {0.0f, 0.0f};
    const int end = min(first + kTileRows, task.sequence);
    for (int key = 0; key < end; key += kRows) {
        load_tile<kRows, kHead>(k_tile, task.head_of(k, batch, kv_head), k.stride, key, task.sequence, task.head_dim);
        commit_copies();
        load_tile<kRows, kHead>(v_tile, task.head_of(v, batch, kv_head), v.stride, key, task.sequence, task.head_dim);
        commit_copies();
        wait_for_copies<1>();
        __syncthreads();
        float p[kRows / 8][4];
        multiply_rows<kHead, kRows>(p, q_tile + warp * 16 * kTileStride<kHead>, k_tile);
        const bool masked = key + kRows - 1 > first + warp * 16 || key + kRows > task.sequence;
        float largest[2] = {maximum[0], maximum[1]};
#pragma unroll
        for (int n = 0; n < kRows / 8; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int column = key + n * 8 + lane % 4 * 2 + i % 2;
                p[n][i] *= to_log2;
                if (masked && (column > row + i / 2 * 8 || column >= task.sequence)) p[n][i] = -INFINITY;
                largest[i / 2] = fmaxf(largest[i / 2], p[n][i]);
            }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            largest[half] = quad_maximum(largest[half]);  // finite: the first tile has key 0, which every query sees
            const float shrink = exponential2(maximum[half] - largest[half]);
            maximum[half] = largest[half];
            denominator[half] *= shrink;
#pragma unroll
            for (int n = 0; n < kHead / 8; ++n) {
                sums[n][2 * half] *= shrink;
                sums[n][2 * half + 1] *= shrink;
            }
        }
#pragma unroll
        for (int n = 0; n < kRows / 8; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                p[n][i] = exponential2(p[n][i] - maximum[i / 2]);
                denominator[i / 2] += p[n][i];
            }
        wait_for_copies<0>();
        __syncthreads();
        multiply_columns<kHead, kRows>(sums, p, v_tile);
        __syncthreads();  // before the tiles are overwritten
    }
    denominator[0] = quad_sum(denominator[0]);
    denominator[1] = quad_sum(denominator[1]);
    store_tile<kHead>(out.data + batch * task.sequence * out.stride + static_cast<std::int64_t>(head) * task.head_dim,
                      out.stride, sums, first + warp * 16, task.sequence, task.head_dim, 1.0f / denominator[0],
                      1.0f / denominator[1]);
    float* const log_row = log_sums.data + (batch * task.heads + head) * log_sums.stride;
    if (lane % 4 == 0) {
        if (row < task.sequence) log_row[row] = maximum[0] * kLn2 + logf(denominator[0]);
        if (row + 8 < task.sequence) log_row[row + 8] = maximum[1] * kLn2 + logf(denominator[1]);
    }
}

/// A tile of queries goes through the keys that they see.
template <int kHead>
__global__ void __launch_bounds__(32 * kWarps)
    tile_query_gradient_kernel(TileTask task, View<Bf16> dout, View<Bf16> q, View<Bf16> k, View<Bf16> v,
                               View<float> log_sums, const float* products, View<Bf16> dq) {
    constexpr int kRows = kStepRows<kHead>;
    Bf16* const q_tile = reinterpret_cast<Bf16*>(dynamic_shared());
    Bf16* const dout_tile = q_tile + kTileRows * kTileStride<kHead>;
    Bf16* const k_tile = dout_tile + kTileRows * kTileStride<kHead>;
    Bf16* const v_tile = k_tile + kRows * kTileStride<kHead>;
    const int first = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kTileRows, head = blockIdx.y;
    const std::int64_t batch = blockIdx.z;
    const int kv_head = head / (task.heads / task.kv_heads);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row = first + warp * 16 + lane / 4;
    const float to_log2 = task.scale * kLog2OfE;

    load_tile<kTileRows, kHead>(q_tile, task.head_of(q, batch, head), q.stride, first, task.sequence, task.head_dim);
    load_tile<kTileRows, kHead>(dout_tile, task.head_of(dout, batch, head), dout.stride, first, task.sequence,
                                task.head_dim);
    const std::int64_t of_head = batch * task.heads + head;
    float log_sum[2], of_output[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const bool there = row + half * 8 < task.sequence;
        log_sum[half] = there ? log_sums.data[of_head * log_sums.stride + row + half * 8] * kLog2OfE : 0.0f;
        of_output[half] = there ? products[of_head * task.sequence + row + half * 8] : 0.0f;
    }
    float sums[kHead / 8][4];
    clear(sums);
    const int end = min(first + kTileRows, task.sequence);
    for (int key = 0; key < end; key += kRows) {
        load_tile<kRows, kHead>(k_tile, task.head_of(k, batch, kv_head), k.stride, key, task.sequence, task.head_dim);
        load_tile<kRows, kHead>(v_tile, task.head_of(v, batch, kv_head), v.stride, key, task.sequence, task.head_dim);
        commit_copies();
        wait_for_copies<0>();
        __syncthreads();
        float p[kRows / 8][4], slopes[kRows / 8][4];
        multiply_rows<kHead, kRows>(p, q_tile + warp * 16 * kTileStride<kHead>, k_tile);
        multiply_rows<kHead, kRows>(slopes, dout_tile + warp * 16 * kTileStride<kHead>, v_tile);
#pragma unroll
        for (int n = 0; n < kRows / 8; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int column = key + n * 8 + lane % 4 * 2 + i % 2, half = i / 2;
                const bool seen = column <= row + half * 8 && row + half * 8 < task.sequence;
                const float weight = seen ? exponential2(p[n][i] * to_log2 - log_sum[half]) : 0.0f;
                p[n][i] = weight * (slopes[n][i] - of_output[half]);
            }
        multiply_columns<kHead, kRows>(sums, p, k_tile);
        __syncthreads();
    }
    store_tile<kHead>(dq.data + batch * task.sequence * dq.stride + static_cast<std::int64_t>(head) * task.head_dim,
                      dq.stride, sums, first + warp * 16, task.sequence, task.head_dim, task.scale, task.scale);
}

/// A tile of keys goes through the queries that see them, of every head that reads them. Products are transposed: a
/// warp has 16 keys as rows.
template <int kHead>
__global__ void __launch_bounds__(32 * kWarps)
    tile_key_gradient_kernel(TileTask task, View<Bf16> dout, View<Bf16> q, View<Bf16> k, View<Bf16> v,
                             View<float> log_sums, const float* products, View<Bf16> dk, View<Bf16> dv) {
    constexpr int kRows = kStepRows<kHead>;
    Bf16* const k_tile = reinterpret_cast<Bf16*>(dynamic_shared());
    Bf16* const v_tile = k_tile + kTileRows * kTileStride<kHead>;
    Bf16* const q_tile = v_tile + kTileRows * kTileStride<kHead>;
    Bf16* const dout_tile = q_tile + kRows * kTileStride<kHead>;
    float* const log_tile = reinterpret_cast<float*>(dout_tile + kRows * kTileStride<kHead>);
    float* const product_tile = log_tile + kRows;
    const int first = static_cast<int>(blockIdx.x) * kTileRows, kv_head = blockIdx.y;
    const std::int64_t batch = blockIdx.z;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row = first + warp * 16 + lane / 4;
    const float to_log2 = task.scale * kLog2OfE;

    load_tile<kTileRows, kHead>(k_tile, task.head_of(k, batch, kv_head), k.stride, first, task.sequence, task.head_dim);
    load_tile<kTileRows, kHead>(v_tile, task.head_of(v, batch, kv_head), v.stride, first, task.sequence, task.head_dim);
    float of_key[kHead / 8][4], of_value[kHead / 8][4];
    clear(of_key);
    clear(of_value);
    const int readers = task.heads / task.kv_heads;
    for (int head = kv_head * readers; head < (kv_head + 1) * readers; ++head) {
        const std::int64_t of_head = batch * task.heads + head;
        for (int query = first / kRows * kRows; query < task.sequence; query += kRows) {
            load_tile<kRows, kHead>(q_tile, task.head_of(q, batch, head), q.stride, query, task.sequence,
                                    task.head_dim);
            load_tile<kRows, kHead>(dout_tile, task.head_of(dout, batch, head), dout.stride, query, task.sequence,
                                    task.head_dim);
            commit_copies();
            for (int i = threadIdx.x; i < kRows; i += blockDim.x) {
                const bool there = query + i < task.sequence;
                log_tile[i] = there ? log_sums.data[of_head * log_sums.stride + query + i] * kLog2OfE : 0.0f;
                product_tile[i] = there ? products[of_head * task.sequence + query + i] : 0.0f;
            }
            wait_for_copies<0>();
            __syncthreads();
            float p[kRows / 8][4], slopes[kRows / 8][4];
            multiply_rows<kHead, kRows>(p, k_tile + warp * 16 * kTileStride<kHead>, q_tile);
            multiply_rows<kHead, kRows>(slopes, v_tile + warp * 16 * kTileStride<kHead>, dout_tile);
#pragma unroll
            for (int n = 0; n < kRows / 8; ++n)
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int at = n * 8 + lane % 4 * 2 + i % 2;
                    const bool seen = query + at >= row + i / 2 * 8 && query + at < task.sequence;
                    p[n][i] = seen ? exponential2(p[n][i] * to_log2 - log_tile[at]) : 0.0f;
                    slopes[n][i] = p[n][i] * (slopes[n][i] - product_tile[at]);
                }
            multiply_columns<kHead, kRows>(of_value, p, dout_tile);
            multiply_columns<kHead, kRows>(of_key, slopes, q_tile);
            __syncthreads();
        }
    }
    const std::int64_t start = batch * task.sequence;
    const std::int64_t column = static_cast<std::int64_t>(kv_head) * task.head_dim;
    store_tile<kHead>(dk.data + start * dk.stride + column, dk.stride, of_key, first + warp * 16, task.sequence,
                      task.head_dim, task.scale, task.scale);
    store_tile<kHead>(dv.data + start * dv.stride + column, dv.stride, of_value, first + warp * 16, task.sequence,
                      task.head_dim, 1.0f, 1.0f);
}

TileTask task_of(const AttentionShape& shape) {
    return {static_cast<int>(shape.sequence), static_cast<int>(shape.heads), static_cast<int>(shape.kv_heads),
            static_cast<int>(shape.head_dim), 1.0f / std::sqrt(static_cast<float>(shape.head_dim))};
}

/// `tiles` of 64 rows and `steps` of kStepRows rows in shared memory.
template <int kHead>
Geometry tile_geometry(const AttentionShape& shape, std::int64_t heads, int tiles, int steps, std::size_t more_bytes) {
    Geometry geometry;
    geometry.block = {32 * kWarps, 1, 1};
    geometry.grid = {static_cast<unsigned>(divided_up(shape.sequence, kTileRows)), static_cast<unsigned>(heads),
                     static_cast<unsigned>(shape.batch)};
    const int rows = tiles * kTileRows + steps * kStepRows<kHead>;
    geometry.shared_bytes = static_cast<std::size_t>(rows) * kTileStride<kHead> * sizeof(Bf16) + more_bytes;
    return geometry;
}

template <typename With>
void by_head(std::int64_t head_dim, const With& with) {
    if (head_dim <= 64) {
        with(std::integral_constant<int, 64>{});
    } else {
        with(std::integral_constant<int, 128>{});
    }
}

bool in_packs(const Tensor& tensor) {
    return tensor.type == DataType::kBfloat16 && reinterpret_cast<std::uintptr_t>(tensor.data) % 16 == 0 &&
           (tensor.rows <= 1 || tensor.stride % 8 == 0);
}

}  // namespace

bool tiles_fit(const AttentionShape& shape, const AttentionTensors& tensors) {
    return shape.head_dim % 8 == 0 && shape.head_dim <= 128 && in_packs(tensors.q) && in_packs(tensors.k) &&
           in_packs(tensors.v) && in_packs(tensors.out);
}

bool tiles_fit(const AttentionShape& shape, const AttentionTensors& tensors, const AttentionGradients& gradients) {
    return tiles_fit(shape, tensors) && in_packs(gradients.dout) && in_packs(gradients.dq) && in_packs(gradients.dk) &&
           in_packs(gradients.dv);
}

void tile_attention(Stream stream, const AttentionShape& shape, const AttentionTensors& tensors) {
    by_head(shape.head_dim, [&](auto head) {
        launch("attention", tile_attention_kernel<head()>, tile_geometry<head()>(shape, shape.heads, 1, 2, 0), stream,
               task_of(shape), view<Bf16>(tensors.q), view<Bf16>(tensors.k), view<Bf16>(tensors.v),
               view<Bf16>(tensors.out), view<float>(tensors.log_sums));
    });
}

void tile_attention_gradient(Stream stream, const AttentionShape& shape, const AttentionTensors& tensors,
                             const AttentionGradients& gradients) {
    output_products(stream, shape, gradients.dout, tensors.out, gradients.products);
    by_head(shape.head_dim, [&](auto head) {
        constexpr std::size_t kTwoColumns = 2 * kStepRows<head()> * sizeof(float);
        launch("attention_gradient", tile_query_gradient_kernel<head()>,
               tile_geometry<head()>(shape, shape.heads, 2, 2, 0), stream, task_of(shape), view<Bf16>(gradients.dout),
               view<Bf16>(tensors.q), view<Bf16>(tensors.k), view<Bf16>(tensors.v), view<float>(tensors.log_sums),
               gradients.products, view<Bf16>(gradients.dq));
        launch("attention_gradient", tile_key_gradient_kernel<head()>,
               tile_geometry<head()>(shape, shape.kv_heads, 2, 2, kTwoColumns), stream, task_of(shape),
               view<Bf16>(gradients.dout), view<Bf16>(tensors.q), view<Bf16>(tensors.k), view<Bf16>(tensors.v),
               view<float>(tensors.log_sums), gradients.products, view<Bf16>(gradients.dk), view<Bf16>(gradients.dv));
    });
}

}  // namespace headway::backend::cuda
