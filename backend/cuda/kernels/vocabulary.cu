#include "backend/cuda/kernels/kernels.h"
#include "backend/cuda/kernels/reductions.cuh"

namespace headway::backend::cuda {

namespace {

template <typename T>
struct Embed {
    const std::int32_t* tokens;
    std::int64_t first_row, table_rows;
    View<T> table, out;
    template <int N>
    __device__ void at(std::int64_t row, std::int64_t column) const {
        const std::int64_t wanted = tokens[row] - first_row;
        Values<N> values;
        for (int i = 0; i < N; ++i) values.at[i] = 0.0f;
        if (wanted >= 0 && wanted < table_rows) values = table.template load<N>(wanted, column);
        out.store(row, column, values);
    }
};

/// A block for every token; that of the first of equal tokens adds the gradients of all of them, in their order.
template <typename T>
__global__ void embedding_gradient_kernel(const std::int32_t* tokens, int count, View<T> dout, std::int64_t first_row,
                                          std::int64_t table_rows, std::int64_t columns, View<float> dtable) {
    constexpr int kWarps = kBlockThreads / 32;
    __shared__ int found[kBlockThreads];
    __shared__ int found_by_warp[kWarps];
    const int own = blockIdx.x, thread = threadIdx.x;
    const std::int32_t token = tokens[own];
    const std::int64_t row = token - first_row;
    if (row < 0 || row >= table_rows) return;
    for (int base = 0; base < own; base += kBlockThreads) {
        const int at = base + thread;
        if (__syncthreads_or(at < own && tokens[at] == token)) return;
    }
    for (int base = own; base < count; base += kBlockThreads) {
        const int at = base + thread;
        const bool equal = at < count && tokens[at] == token;
        const unsigned of_warp = __ballot_sync(0xffffffffu, equal);
        if (thread % 32 == 0) found_by_warp[thread / 32] = __popc(of_warp);
        __syncthreads();
        int before = __popc(of_warp & ((1u << (thread % 32)) - 1u)), all = 0;
        for (int warp = 0; warp < kWarps; ++warp) {
            if (warp < thread / 32) before += found_by_warp[warp];
            all += found_by_warp[warp];
        }
        if (equal) found[before] = at;
        __syncthreads();
        if (all > 0) {
            for (std::int64_t column = thread; column < columns; column += kBlockThreads) {
                float sum = dtable.data[row * dtable.stride + column];
                for (int i = 0; i < all; ++i) sum += to_float(dout.data[found[i] * dout.stride + column]);
                dtable.data[row * dtable.stride + column] = sum;
            }
        }
    }
}

template <typename T>
struct AddPositions {
    View<T> table, x;
    std::int64_t sequence, first_token;
    template <int N>
    __device__ void at(std::int64_t row, std::int64_t column) const {
        Values<N> sum = x.template load<N>(row, column);
        const Values<N> more = table.template load<N>((first_token + row) % sequence, column);
        for (int i = 0; i < N; ++i) sum.at[i] += more.at[i];
        x.store(row, column, sum);
    }
};

/// Row = position.
template <typename T>
struct PositionsGradient {
    View<T> dx;
    View<float> dtable;
    std::int64_t rows, sequence, first_token;
    template <int N>
    __device__ void at(std::int64_t position, std::int64_t column) const {
        const std::int64_t first = (position - first_token % sequence + sequence) % sequence;
        if (first >= rows) return;
        Values<N> sum = dtable.template load<N>(position, column);
        for (std::int64_t row = first; row < rows; row += sequence) {
            const Values<N> more = dx.template load<N>(row, column);
            for (int i = 0; i < N; ++i) sum.at[i] += more.at[i];
        }
        dtable.store(position, column, sum);
    }
};

template <int N, typename T>
__global__ void row_maxima_kernel(std::int64_t columns, View<T> logits, float* maxima) {
    const std::int64_t row = blockIdx.x;
    float largest = to_float(logits.data[row * logits.stride]);
    for (std::int64_t column = threadIdx.x * N; column < columns; column += kBlockThreads * N) {
        const Values<N> values = logits.template load<N>(row, column);
        for (int i = 0; i < N; ++i) largest = fmaxf(largest, values.at[i]);
    }
    largest = row_maximum<kBlockThreads>(largest);
    if (threadIdx.x == 0) maxima[row] = largest;
}

template <int N, typename T>
__global__ void exponential_sums_kernel(std::int64_t columns, View<T> logits, const float* maxima,
                                        const std::int32_t* targets, std::int64_t first_column, float* sums,
                                        float* target_logits) {
    const std::int64_t row = blockIdx.x;
    const float maximum = maxima[row];
    float sum = 0.0f;
    for (std::int64_t column = threadIdx.x * N; column < columns; column += kBlockThreads * N) {
        const Values<N> values = logits.template load<N>(row, column);
        for (int i = 0; i < N; ++i) sum += expf(values.at[i] - maximum);
    }
    sum = row_sum<kBlockThreads>(sum);
    if (threadIdx.x == 0) {
        const std::int64_t target = targets[row] - first_column;
        const bool here = target >= 0 && target < columns;
        sums[row] = sum;
        target_logits[row] = here ? to_float(logits.data[row * logits.stride + target]) - maximum : 0.0f;
    }
}

template <int N, typename T>
__global__ void cross_entropy_kernel(std::int64_t columns, View<T> logits, const float* maxima, const float* sums,
                                     const std::int32_t* targets, const float* target_logits, std::int64_t first_column,
                                     float scale, float* losses) {
    const std::int64_t row = blockIdx.x;
    const float maximum = maxima[row], sum = sums[row], share = 1.0f / sum;
    const std::int64_t target = targets[row] - first_column;
    for (std::int64_t column = threadIdx.x * N; column < columns; column += kBlockThreads * N) {
        Values<N> values = logits.template load<N>(row, column);
        for (int i = 0; i < N; ++i) {
            const float probability = expf(values.at[i] - maximum) * share;
            values.at[i] = scale * (probability - (column + i == target ? 1.0f : 0.0f));
        }
        logits.store(row, column, values);
    }
    if (threadIdx.x == 0) losses[row] = logf(sum) - target_logits[row];
}

/// One block a row, of whatever width.
Geometry block_a_row(std::int64_t rows) {
    Geometry geometry;
    geometry.block = {kBlockThreads, 1, 1};
    geometry.grid.x = static_cast<unsigned>(rows);
    return geometry;
}

template <typename T>
T* start_of(const Tensor& tensor) {
    return static_cast<T*>(tensor.data);
}

}  // namespace

void embedding(Stream stream, const Tensor& tokens, const Tensor& table, std::int64_t first_row, const Tensor& out) {
    by_type(out.type, [&](auto type) {
        using T = decltype(type);
        over_elements(
            "embedding", stream, out.rows, out.columns, common_width({table, out}),
            Embed<T>{start_of<const std::int32_t>(tokens), first_row, table.rows, view<T>(table), view<T>(out)});
    });
}

void embedding_gradient(Stream stream, const Tensor& tokens, const Tensor& dout, std::int64_t first_row,
                        const Tensor& dtable) {
    if (dout.empty() || dtable.empty()) return;
    by_type(dout.type, [&](auto type) {
        using T = decltype(type);
        launch("embedding_gradient", embedding_gradient_kernel<T>, block_a_row(dout.rows), stream,
               start_of<const std::int32_t>(tokens), static_cast<int>(dout.rows), view<T>(dout), first_row, dtable.rows,
               dout.columns, view<float>(dtable));
    });
}

void add_positions(Stream stream, const Tensor& table, std::int64_t sequence, std::int64_t first_token,
                   const Tensor& x) {
    by_type(x.type, [&](auto type) {
        using T = decltype(type);
        over_elements("add_positions", stream, x.rows, x.columns, common_width({table, x}),
                      AddPositions<T>{view<T>(table), view<T>(x), sequence, first_token});
    });
}

void positions_gradient(Stream stream, const Tensor& dx, std::int64_t sequence, std::int64_t first_token,
                        const Tensor& dtable) {
    by_type(dx.type, [&](auto type) {
        using T = decltype(type);
        over_elements("positions_gradient", stream, sequence, dx.columns, common_width({dx, dtable}),
                      PositionsGradient<T>{view<T>(dx), view<float>(dtable), dx.rows, sequence, first_token});
    });
}

void row_maxima(Stream stream, const Tensor& logits, const Tensor& maxima) {
    if (logits.empty()) return;
    by_type(logits.type, [&](auto type) {
        using T = decltype(type);
        const auto run = [&](auto kernel) {
            launch("row_maxima", kernel, block_a_row(logits.rows), stream, logits.columns, view<T>(logits),
                   start_of<float>(maxima));
        };
        common_width({logits}) == kWidth ? run(row_maxima_kernel<kWidth, T>) : run(row_maxima_kernel<1, T>);
    });
}

void exponential_sums(Stream stream, const Tensor& logits, const Tensor& maxima, const Tensor& targets,
                      std::int64_t first_column, const Tensor& sums, const Tensor& target_logits) {
    if (logits.rows == 0) return;
    by_type(logits.type, [&](auto type) {
        using T = decltype(type);
        const auto run = [&](auto kernel) {
            launch("exponential_sums", kernel, block_a_row(logits.rows), stream, logits.columns, view<T>(logits),
                   start_of<const float>(maxima), start_of<const std::int32_t>(targets), first_column,
                   start_of<float>(sums), start_of<float>(target_logits));
        };
        common_width({logits}) == kWidth ? run(exponential_sums_kernel<kWidth, T>) : run(exponential_sums_kernel<1, T>);
    });
}

void cross_entropy(Stream stream, const Tensor& logits, const Tensor& maxima, const Tensor& sums, const Tensor& targets,
                   const Tensor& target_logits, std::int64_t first_column, double scale, const Tensor& losses) {
    if (logits.rows == 0) return;
    by_type(logits.type, [&](auto type) {
        using T = decltype(type);
        const auto run = [&](auto kernel) {
            launch("cross_entropy", kernel, block_a_row(logits.rows), stream, logits.columns, view<T>(logits),
                   start_of<const float>(maxima), start_of<const float>(sums), start_of<const std::int32_t>(targets),
                   start_of<const float>(target_logits), first_column, static_cast<float>(scale),
                   start_of<float>(losses));
        };
        common_width({logits}) == kWidth ? run(cross_entropy_kernel<kWidth, T>) : run(cross_entropy_kernel<1, T>);
    });
}

}  // namespace headway::backend::cuda
