#include <cmath>
#include <type_traits>

#include "backend/cuda/kernels/elements.cuh"
#include "backend/cuda/kernels/kernels.h"

namespace headway::backend::cuda {

namespace {

constexpr int kWarps = kBlockThreads / 32;

/// What a warp of these kernels works on: one row of one head of one sequence.
struct RowTask {
    int sequence, heads, kv_heads, head_dim;
    float scale;

    __device__ std::int64_t row_of(std::int64_t batch, int token) const { return batch * sequence + token; }
};

/// A head's part of a row, spread over a warp: element i * 32 + lane.
template <int kOwn>
struct Spread {
    float at[kOwn];
};
template <int kOwn, typename T>
__device__ Spread<kOwn> spread_row(View<T> from, std::int64_t row, int head, int head_dim) {
    Spread<kOwn> result;
    const T* const start = from.data + row * from.stride + static_cast<std::int64_t>(head) * head_dim;
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
        const int at = i * 32 + static_cast<int>(threadIdx.x);
        result.at[i] = at < head_dim ? to_float(start[at]) : 0.0f;
    }
    return result;
}
template <int kOwn, typename T>
__device__ void store_row(View<T> to, std::int64_t row, int head, int head_dim, const Spread<kOwn>& values,
                          float factor) {
    T* const start = to.data + row * to.stride + static_cast<std::int64_t>(head) * head_dim;
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
        const int at = i * 32 + static_cast<int>(threadIdx.x);
        if (at < head_dim) start[at] = from_float<T>(values.at[i] * factor);
    }
}
template <int kOwn>
__device__ float product(const Spread<kOwn>& a, const Spread<kOwn>& b) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kOwn; ++i) sum += a.at[i] * b.at[i];
    return warp_sum(sum);
}
template <int kOwn>
__device__ void add_scaled(Spread<kOwn>& to, float factor, const Spread<kOwn>& more) {
#pragma unroll
    for (int i = 0; i < kOwn; ++i) to.at[i] += factor * more.at[i];
}

/// A warp a query: running maximum, denominator and output (Milakov & Gimelshein 2018, online softmax).
template <int kOwn, typename T>
__global__ void row_attention_kernel(RowTask task, View<T> q, View<T> k, View<T> v, View<T> out, View<float> log_sums) {
    const int token = blockIdx.x * kWarps + threadIdx.y, head = blockIdx.y;
    if (token >= task.sequence) return;
    const std::int64_t batch = blockIdx.z;
    const int kv_head = head / (task.heads / task.kv_heads);
    const Spread<kOwn> query = spread_row<kOwn>(q, task.row_of(batch, token), head, task.head_dim);
    Spread<kOwn> sum{};
    float maximum = 0.0f, denominator = 0.0f;
    for (int key = 0; key <= token; ++key) {
        const std::int64_t row = task.row_of(batch, key);
        const float score = task.scale * product(query, spread_row<kOwn>(k, row, kv_head, task.head_dim));
        if (key == 0 || score > maximum) {
            const float shrink = key == 0 ? 0.0f : expf(maximum - score);
            denominator *= shrink;
#pragma unroll
            for (int i = 0; i < kOwn; ++i) sum.at[i] *= shrink;
            maximum = score;
        }
        const float weight = expf(score - maximum);
        denominator += weight;
        add_scaled(sum, weight, spread_row<kOwn>(v, row, kv_head, task.head_dim));
    }
    store_row(out, task.row_of(batch, token), head, task.head_dim, sum, 1.0f / denominator);
    if (threadIdx.x == 0)
        log_sums.data[(batch * task.heads + head) * log_sums.stride + token] = maximum + logf(denominator);
}

/// A warp a query: dq = scale * sum over keys of p (dout v - dout out) k.
template <int kOwn, typename T>
__global__ void row_query_gradient_kernel(RowTask task, View<T> dout, View<T> q, View<T> k, View<T> v,
                                          View<float> log_sums, const float* products, View<T> dq) {
    const int token = blockIdx.x * kWarps + threadIdx.y, head = blockIdx.y;
    if (token >= task.sequence) return;
    const std::int64_t batch = blockIdx.z;
    const int kv_head = head / (task.heads / task.kv_heads);
    const std::int64_t own = task.row_of(batch, token);
    const Spread<kOwn> query = spread_row<kOwn>(q, own, head, task.head_dim),
                       gradient = spread_row<kOwn>(dout, own, head, task.head_dim);
    const std::int64_t of_head = batch * task.heads + head;
    const float log_sum = log_sums.data[of_head * log_sums.stride + token];
    const float of_output = products[of_head * task.sequence + token];
    Spread<kOwn> sum{};
    for (int key = 0; key <= token; ++key) {
        const std::int64_t row = task.row_of(batch, key);
        const Spread<kOwn> key_row = spread_row<kOwn>(k, row, kv_head, task.head_dim);
        const float weight = expf(task.scale * product(query, key_row) - log_sum);
        const float slope = product(gradient, spread_row<kOwn>(v, row, kv_head, task.head_dim)) - of_output;
        add_scaled(sum, weight * slope, key_row);
    }
    store_row(dq, own, head, task.head_dim, sum, task.scale);
}

/// A warp a key: sums over the queries that see it, of every head that reads it, in order.
template <int kOwn, typename T>
__global__ void row_key_gradient_kernel(RowTask task, View<T> dout, View<T> q, View<T> k, View<T> v,
                                        View<float> log_sums, const float* products, View<T> dk, View<T> dv) {
    const int key = blockIdx.x * kWarps + threadIdx.y, kv_head = blockIdx.y;
    if (key >= task.sequence) return;
    const std::int64_t batch = blockIdx.z, own = task.row_of(batch, key);
    const Spread<kOwn> key_row = spread_row<kOwn>(k, own, kv_head, task.head_dim),
                       value_row = spread_row<kOwn>(v, own, kv_head, task.head_dim);
    Spread<kOwn> of_key{}, of_value{};
    const int readers = task.heads / task.kv_heads;
    for (int head = kv_head * readers; head < (kv_head + 1) * readers; ++head) {
        const std::int64_t of_head = batch * task.heads + head;
        for (int token = key; token < task.sequence; ++token) {
            const std::int64_t row = task.row_of(batch, token);
            const Spread<kOwn> query = spread_row<kOwn>(q, row, head, task.head_dim),
                               gradient = spread_row<kOwn>(dout, row, head, task.head_dim);
            const float weight =
                expf(task.scale * product(query, key_row) - log_sums.data[of_head * log_sums.stride + token]);
            const float slope = product(gradient, value_row) - products[of_head * task.sequence + token];
            add_scaled(of_value, weight, gradient);
            add_scaled(of_key, weight * slope, query);
        }
    }
    store_row(dk, own, kv_head, task.head_dim, of_key, task.scale);
    store_row(dv, own, kv_head, task.head_dim, of_value, 1.0f);
}

/// The same sum from the weights themselves: dout * out would bring in how `out` was rounded, which matters where the
/// gradient cancels.
template <int kOwn, typename T>
__global__ void weighted_slopes_kernel(RowTask task, View<T> dout, View<T> q, View<T> k, View<T> v,
                                       View<float> log_sums, float* products) {
    const int token = blockIdx.x * kWarps + threadIdx.y, head = blockIdx.y;
    if (token >= task.sequence) return;
    const std::int64_t batch = blockIdx.z, own = task.row_of(batch, token), of_head = batch * task.heads + head;
    const int kv_head = head / (task.heads / task.kv_heads);
    const Spread<kOwn> query = spread_row<kOwn>(q, own, head, task.head_dim),
                       gradient = spread_row<kOwn>(dout, own, head, task.head_dim);
    const float log_sum = log_sums.data[of_head * log_sums.stride + token];
    float sum = 0.0f;
    for (int key = 0; key <= token; ++key) {
        const std::int64_t row = task.row_of(batch, key);
        const float score = product(query, spread_row<kOwn>(k, row, kv_head, task.head_dim));
        const float slope = product(gradient, spread_row<kOwn>(v, row, kv_head, task.head_dim));
        sum += expf(task.scale * score - log_sum) * slope;
    }
    if (threadIdx.x == 0) products[of_head * task.sequence + token] = sum;
}

template <int kOwn, typename T>
__global__ void output_products_kernel(RowTask task, View<T> dout, View<T> out, float* products) {
    const int token = blockIdx.x * kWarps + threadIdx.y, head = blockIdx.y;
    if (token >= task.sequence) return;
    const std::int64_t batch = blockIdx.z, row = task.row_of(batch, token);
    const float sum =
        product(spread_row<kOwn>(dout, row, head, task.head_dim), spread_row<kOwn>(out, row, head, task.head_dim));
    if (threadIdx.x == 0) products[(batch * task.heads + head) * task.sequence + token] = sum;
}

RowTask task_of(const AttentionShape& shape) {
    return {static_cast<int>(shape.sequence), static_cast<int>(shape.heads), static_cast<int>(shape.kv_heads),
            static_cast<int>(shape.head_dim), 1.0f / std::sqrt(static_cast<float>(shape.head_dim))};
}

Geometry warp_a_row(const AttentionShape& shape, std::int64_t heads) {
    Geometry geometry;
    geometry.block = {32, kWarps, 1};
    geometry.grid = {static_cast<unsigned>(divided_up(shape.sequence, kWarps)), static_cast<unsigned>(heads),
                     static_cast<unsigned>(shape.batch)};
    return geometry;
}

/// Calls `with` with the elements of a head that one lane holds.
template <typename With>
void by_own(std::int64_t head_dim, const With& with) {
    if (head_dim <= 64) {
        with(std::integral_constant<int, 2>{});
    } else if (head_dim <= 128) {
        with(std::integral_constant<int, 4>{});
    } else {
        with(std::integral_constant<int, 8>{});
    }
}

}  // namespace

void row_attention(Stream stream, const AttentionShape& shape, const AttentionTensors& tensors) {
    by_type(tensors.q.type, [&](auto type) {
        using T = decltype(type);
        by_own(shape.head_dim, [&](auto own) {
            launch("attention", row_attention_kernel<own(), T>, warp_a_row(shape, shape.heads), stream, task_of(shape),
                   view<T>(tensors.q), view<T>(tensors.k), view<T>(tensors.v), view<T>(tensors.out),
                   view<float>(tensors.log_sums));
        });
    });
}

void row_attention_gradient(Stream stream, const AttentionShape& shape, const AttentionTensors& tensors,
                            const AttentionGradients& gradients) {
    by_type(tensors.q.type, [&](auto type) {
        using T = decltype(type);
        by_own(shape.head_dim, [&](auto own) {
            launch("attention_gradient", weighted_slopes_kernel<own(), T>, warp_a_row(shape, shape.heads), stream,
                   task_of(shape), view<T>(gradients.dout), view<T>(tensors.q), view<T>(tensors.k), view<T>(tensors.v),
                   view<float>(tensors.log_sums), gradients.products);
            launch("attention_gradient", row_query_gradient_kernel<own(), T>, warp_a_row(shape, shape.heads), stream,
                   task_of(shape), view<T>(gradients.dout), view<T>(tensors.q), view<T>(tensors.k), view<T>(tensors.v),
                   view<float>(tensors.log_sums), gradients.products, view<T>(gradients.dq));
            launch("attention_gradient", row_key_gradient_kernel<own(), T>, warp_a_row(shape, shape.kv_heads), stream,
                   task_of(shape), view<T>(gradients.dout), view<T>(tensors.q), view<T>(tensors.k), view<T>(tensors.v),
                   view<float>(tensors.log_sums), gradients.products, view<T>(gradients.dk), view<T>(gradients.dv));
        });
    });
}

void output_products(Stream stream, const AttentionShape& shape, const Tensor& dout, const Tensor& out,
                     float* products) {
    by_type(out.type, [&](auto type) {
        using T = decltype(type);
        by_own(shape.head_dim, [&](auto own) {
            launch("attention_gradient", output_products_kernel<own(), T>, warp_a_row(shape, shape.heads), stream,
                   task_of(shape), view<T>(dout), view<T>(out), products);
        });
    });
}

}  // namespace headway::backend::cuda
