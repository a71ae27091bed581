#include <type_traits>

#include "backend/cuda/kernels/kernels.h"
#include "backend/cuda/kernels/reductions.cuh"

namespace headway::backend::cuda {

namespace {

/// Layer norm where kCentred, else RMS norm. A row is read three (two) times; the first leaves it in the cache.
template <int kThreads, int N, bool kCentred, typename T>
__global__ void normalize_kernel(std::int64_t rows, std::int64_t columns, View<T> x, View<T> gamma, View<T> beta,
                                 float epsilon, View<T> y, float* means, float* rstds) {
    const std::int64_t row = own_row();
    if (row >= rows) return;
    const float share = 1.0f / static_cast<float>(columns);
    const std::int64_t first = threadIdx.x * N;
    constexpr int kStep = kThreads * N;
    float mean = 0.0f;
    if constexpr (kCentred) {
        float sum = 0.0f;
        for (std::int64_t column = first; column < columns; column += kStep) {
            const Values<N> values = x.template load<N>(row, column);
            for (int i = 0; i < N; ++i) sum += values.at[i];
        }
        mean = row_sum<kThreads>(sum) * share;
    }
    float squares = 0.0f;
    for (std::int64_t column = first; column < columns; column += kStep) {
        const Values<N> values = x.template load<N>(row, column);
        for (int i = 0; i < N; ++i) squares += (values.at[i] - mean) * (values.at[i] - mean);
    }
    const float rstd = 1.0f / sqrtf(row_sum<kThreads>(squares) * share + epsilon);
    if (threadIdx.x == 0) {
        if constexpr (kCentred) means[row] = mean;
        rstds[row] = rstd;
    }
    for (std::int64_t column = first; column < columns; column += kStep) {
        Values<N> values = x.template load<N>(row, column);
        const Values<N> factors = gamma.template load<N>(0, column);
        for (int i = 0; i < N; ++i) values.at[i] = (values.at[i] - mean) * rstd * factors.at[i];
        if constexpr (kCentred) {
            const Values<N> shifts = beta.template load<N>(0, column);
            for (int i = 0; i < N; ++i) values.at[i] += shifts.at[i];
        }
        y.store(row, column, values);
    }
}

/// dx += rstd (g - mean(g) - n mean(g n)) with g = dy gamma and n the normalized row; without mean(g) for RMS norm.
template <int kThreads, int N, bool kCentred, typename T>
__global__ void normalize_gradient_kernel(std::int64_t rows, std::int64_t columns, View<T> dy, View<T> x, View<T> gamma,
                                          const float* means, const float* rstds, View<T> dx) {
    const std::int64_t row = own_row();
    if (row >= rows) return;
    const float share = 1.0f / static_cast<float>(columns);
    const float rstd = rstds[row];
    const float mean = kCentred ? means[row] : 0.0f;
    const std::int64_t first = threadIdx.x * N;
    constexpr int kStep = kThreads * N;
    float sum = 0.0f, product = 0.0f;
    for (std::int64_t column = first; column < columns; column += kStep) {
        const Values<N> values = x.template load<N>(row, column), gradients = dy.template load<N>(row, column),
                        factors = gamma.template load<N>(0, column);
        for (int i = 0; i < N; ++i) {
            const float gradient = gradients.at[i] * factors.at[i];
            sum += gradient;
            product += gradient * (values.at[i] - mean) * rstd;
        }
    }
    const float mean_gradient = kCentred ? row_sum<kThreads>(sum) * share : 0.0f;
    const float mean_product = row_sum<kThreads>(product) * share;
    for (std::int64_t column = first; column < columns; column += kStep) {
        const Values<N> values = x.template load<N>(row, column), gradients = dy.template load<N>(row, column),
                        factors = gamma.template load<N>(0, column);
        Values<N> result = dx.template load<N>(row, column);
        for (int i = 0; i < N; ++i) {
            const float normalized = (values.at[i] - mean) * rstd;
            result.at[i] += rstd * (gradients.at[i] * factors.at[i] - mean_gradient - normalized * mean_product);
        }
        dx.store(row, column, result);
    }
}

/// dgamma: sums of dy n; dbeta: sums of dy.
template <bool kCentred, typename T>
struct NormTerms {
    static constexpr int kOutputs = kCentred ? 2 : 1;
    View<T> dy, x;
    const float* means;
    const float* rstds;
    template <int N>
    __device__ void add(std::int64_t row, std::int64_t column, Values<N>* sums) const {
        const float mean = kCentred ? means[row] : 0.0f, rstd = rstds[row];
        const Values<N> gradients = dy.template load<N>(row, column), values = x.template load<N>(row, column);
        for (int i = 0; i < N; ++i) {
            sums[0].at[i] += gradients.at[i] * (values.at[i] - mean) * rstd;
            if constexpr (kCentred) sums[1].at[i] += gradients.at[i];
        }
    }
};

/// Calls `with` with the threads of a row and the elements of an access, as constants.
template <typename With>
void by_row_shape(std::int64_t columns, int width, const With& with) {
    const auto by_width = [&](auto threads) {
        if (width == kWidth) {
            with(threads, std::integral_constant<int, kWidth>{});
        } else {
            with(threads, std::integral_constant<int, 1>{});
        }
    };
    if (threads_of_row(columns) == 32) {
        by_width(std::integral_constant<int, 32>{});
    } else {
        by_width(std::integral_constant<int, kBlockThreads>{});
    }
}

float* floats(const Tensor* tensor) {
    return tensor == nullptr ? nullptr : static_cast<float*>(tensor->data);
}

}  // namespace

void normalize(Stream stream, const Tensor& x, const Tensor& gamma, const Tensor* beta, double epsilon, const Tensor& y,
               const Tensor* mean, const Tensor& rstd) {
    if (x.empty()) return;
    const int width = common_width({x, gamma, beta != nullptr ? *beta : gamma, y});
    const Geometry geometry = rows_geometry(x.rows, threads_of_row(x.columns));
    by_type(x.type, [&](auto type) {
        using T = decltype(type);
        by_row_shape(x.columns, width, [&](auto threads, auto elements) {
            const auto run = [&](auto kernel) {
                launch("normalize", kernel, geometry, stream, x.rows, x.columns, view<T>(x), view<T>(gamma),
                       view<T>(beta != nullptr ? *beta : gamma), static_cast<float>(epsilon), view<T>(y), floats(mean),
                       floats(&rstd));
            };
            if (mean != nullptr) {
                run(normalize_kernel<threads(), elements(), true, T>);
            } else {
                run(normalize_kernel<threads(), elements(), false, T>);
            }
        });
    });
}

void normalize_gradient(Stream stream, const Tensor& dy, const Tensor& x, const Tensor& gamma, const Tensor* mean,
                        const Tensor& rstd, const Tensor& dx, const Tensor& dgamma, const Tensor* dbeta, void* strips) {
    if (x.empty()) return;
    const int width = common_width({dy, x, gamma, dx});
    const Geometry geometry = rows_geometry(x.rows, threads_of_row(x.columns));
    by_type(x.type, [&](auto type) {
        using T = decltype(type);
        // Parameters first: dx may be dy.
        const auto parameters = [&](auto centred) {
            add_column_sums("normalize_gradient", stream, x.rows, x.columns, common_width({dy, x}),
                            NormTerms<centred(), T>{view<T>(dy), view<T>(x), floats(mean), floats(&rstd)},
                            static_cast<float*>(strips), floats(&dgamma), floats(dbeta));
        };
        if (mean != nullptr) {
            parameters(std::true_type{});
        } else {
            parameters(std::false_type{});
        }
        by_row_shape(x.columns, width, [&](auto threads, auto elements) {
            const auto run = [&](auto kernel) {
                launch("normalize_gradient", kernel, geometry, stream, x.rows, x.columns, view<T>(dy), view<T>(x),
                       view<T>(gamma), floats(mean), floats(&rstd), view<T>(dx));
            };
            if (mean != nullptr) {
                run(normalize_gradient_kernel<threads(), elements(), true, T>);
            } else {
                run(normalize_gradient_kernel<threads(), elements(), false, T>);
            }
        });
    });
}

}  // namespace headway::backend::cuda
