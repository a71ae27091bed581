#include <cmath>

#include "backend/cuda/kernels/elements.cuh"
#include "backend/cuda/kernels/kernels.h"

namespace headway::backend::cuda {

namespace {

constexpr float kRootOf2OverPi = 0.7978845608028654f;
constexpr float kGeluCubic = 0.044715f;

__device__ float gelu_of(float x) {
    return 0.5f * x * (1.0f + tanhf(kRootOf2OverPi * (x + kGeluCubic * x * x * x)));
}
__device__ float gelu_slope(float x) {
    const float t = tanhf(kRootOf2OverPi * (x + kGeluCubic * x * x * x));
    return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * kRootOf2OverPi * (1.0f + 3.0f * kGeluCubic * x * x);
}
__device__ float logistic(float x) {
    return 1.0f / (1.0f + expf(-x));
}

template <typename T>
struct AddBias {
    View<T> x, bias;
    template <int N>
    __device__ void at(std::int64_t row, std::int64_t column) const {
        Values<N> sum = x.template load<N>(row, column);
        const Values<N> add = bias.template load<N>(0, column);
        for (int i = 0; i < N; ++i) sum.at[i] += add.at[i];
        x.store(row, column, sum);
    }
};

template <typename T>
struct Gelu {
    View<T> x, y;
    template <int N>
    __device__ void at(std::int64_t row, std::int64_t column) const {
        Values<N> value = x.template load<N>(row, column);
        for (int i = 0; i < N; ++i) value.at[i] = gelu_of(value.at[i]);
        y.store(row, column, value);
    }
};

template <typename T>
struct GeluGradient {
    View<T> x, dy, dx;
    template <int N>
    __device__ void at(std::int64_t row, std::int64_t column) const {
        const Values<N> value = x.template load<N>(row, column);
        Values<N> gradient = dy.template load<N>(row, column);
        for (int i = 0; i < N; ++i) gradient.at[i] *= gelu_slope(value.at[i]);
        dx.store(row, column, gradient);
    }
};

template <typename T>
struct Swiglu {
    View<T> gate, up, y;
    template <int N>
    __device__ void at(std::int64_t row, std::int64_t column) const {
        const Values<N> g = gate.template load<N>(row, column);
        Values<N> value = up.template load<N>(row, column);
        for (int i = 0; i < N; ++i) value.at[i] *= g.at[i] * logistic(g.at[i]);
        y.store(row, column, value);
    }
};

template <typename T>
struct SwigluGradient {
    View<T> gate, up, dy, dgate, dup;
    template <int N>
    __device__ void at(std::int64_t row, std::int64_t column) const {
        const Values<N> g = gate.template load<N>(row, column), u = up.template load<N>(row, column),
                        gradient = dy.template load<N>(row, column);
        Values<N> of_gate, of_up;
        for (int i = 0; i < N; ++i) {
            const float share = logistic(g.at[i]);
            of_gate.at[i] = gradient.at[i] * u.at[i] * share * (1.0f + g.at[i] * (1.0f - share));
            of_up.at[i] = gradient.at[i] * g.at[i] * share;
        }
        dgate.store(row, column, of_gate);
        dup.store(row, column, of_up);
    }
};

/// Column p is pair p of the row: element i of a head with element i + half.
template <typename T>
struct Rotary {
    View<T> x;
    View<float> turns;  // [sequence x 2 half]
    std::int64_t sequence;
    int half;
    float sign;
    template <int N>
    __device__ void at(std::int64_t row, std::int64_t pair) const {
        const int head = static_cast<int>(pair) / half, i = static_cast<int>(pair) % half;
        const std::int64_t low = static_cast<std::int64_t>(head) * 2 * half + i;
        Values<N> a = x.template load<N>(row, low), b = x.template load<N>(row, low + half);
        const Values<2 * N> turn = turns.template load<2 * N>(row % sequence, 2 * i);
        for (int k = 0; k < N; ++k) {
            const float cosine = turn.at[2 * k], sine = sign * turn.at[2 * k + 1];
            const float turned = a.at[k] * cosine - b.at[k] * sine;
            b.at[k] = a.at[k] * sine + b.at[k] * cosine;
            a.at[k] = turned;
        }
        x.store(row, low, a);
        x.store(row, low + half, b);
    }
};

struct AdamWStep {
    View<float> gradient, parameters, first_moment, second_moment;
    float gradient_scale, beta1, rest1, beta2, rest2;  // rest: 1 - beta, which float would cancel
    float epsilon, rate, decay;                        // decay: rate * weight_decay
    float correction1, correction2;                    // 1 / (1 - beta^step)
    template <int N>
    __device__ void at(std::int64_t row, std::int64_t column) const {
        const Values<N> g = gradient.load<N>(row, column);
        Values<N> p = parameters.load<N>(row, column), m = first_moment.load<N>(row, column),
                  v = second_moment.load<N>(row, column);
        for (int i = 0; i < N; ++i) {
            const float scaled = g.at[i] * gradient_scale;
            m.at[i] = beta1 * m.at[i] + rest1 * scaled;
            v.at[i] = beta2 * v.at[i] + rest2 * scaled * scaled;
            const float direction = m.at[i] * correction1 / (sqrtf(v.at[i] * correction2) + epsilon);
            p.at[i] -= rate * direction + decay * p.at[i];
        }
        parameters.store(row, column, p);
        first_moment.store(row, column, m);
        second_moment.store(row, column, v);
    }
};

}  // namespace

void add_bias(Stream stream, const Tensor& x, const Tensor& bias) {
    by_type(x.type, [&](auto type) {
        using T = decltype(type);
        over_elements("add_bias", stream, x.rows, x.columns, common_width({x, bias}),
                      AddBias<T>{view<T>(x), view<T>(bias)});
    });
}

void gelu(Stream stream, const Tensor& x, const Tensor& y) {
    by_type(x.type, [&](auto type) {
        using T = decltype(type);
        over_alike("gelu", stream, {x, y}, [](const Tensor* t) { return Gelu<T>{view<T>(t[0]), view<T>(t[1])}; });
    });
}

void gelu_gradient(Stream stream, const Tensor& x, const Tensor& dy, const Tensor& dx) {
    by_type(x.type, [&](auto type) {
        using T = decltype(type);
        over_alike("gelu_gradient", stream, {x, dy, dx}, [](const Tensor* t) {
            return GeluGradient<T>{view<T>(t[0]), view<T>(t[1]), view<T>(t[2])};
        });
    });
}

void swiglu(Stream stream, const Tensor& gate, const Tensor& up, const Tensor& y) {
    by_type(y.type, [&](auto type) {
        using T = decltype(type);
        over_alike("swiglu", stream, {gate, up, y}, [](const Tensor* t) {
            return Swiglu<T>{view<T>(t[0]), view<T>(t[1]), view<T>(t[2])};
        });
    });
}

void swiglu_gradient(Stream stream, const Tensor& gate, const Tensor& up, const Tensor& dy, const Tensor& dgate,
                     const Tensor& dup) {
    by_type(dy.type, [&](auto type) {
        using T = decltype(type);
        over_alike("swiglu_gradient", stream, {gate, up, dy, dgate, dup}, [](const Tensor* t) {
            return SwigluGradient<T>{view<T>(t[0]), view<T>(t[1]), view<T>(t[2]), view<T>(t[3]), view<T>(t[4])};
        });
    });
}

void rotary(Stream stream, const Tensor& x, std::int64_t sequence, std::int64_t head_dim, const float* turns,
            bool inverse) {
    const std::int64_t half = head_dim / 2;
    // Packs of both halves and of the turns are aligned when half a head is whole packs.
    const int width = half % kWidth == 0 ? common_width({x}) : 1;
    by_type(x.type, [&](auto type) {
        using T = decltype(type);
        over_elements("rotary", stream, x.rows, x.columns / 2, width,
                      Rotary<T>{view<T>(x),
                                {const_cast<float*>(turns), head_dim},
                                sequence,
                                static_cast<int>(half),
                                inverse ? -1.0f : 1.0f});
    });
}

void adamw(Stream stream, const AdamW& settings, const Tensor& gradient, const Tensor& parameters,
           const Tensor& first_moment, const Tensor& second_moment) {
    const auto correction = [&](double beta) {
        return static_cast<float>(1.0 / (1.0 - std::pow(beta, static_cast<double>(settings.step))));
    };
    over_alike("adamw", stream,
               {flattened(gradient), flattened(parameters), flattened(first_moment), flattened(second_moment)},
               [&](const Tensor* t) {
                   return AdamWStep{view<float>(t[0]),
                                    view<float>(t[1]),
                                    view<float>(t[2]),
                                    view<float>(t[3]),
                                    static_cast<float>(settings.gradient_scale),
                                    static_cast<float>(settings.beta1),
                                    static_cast<float>(1.0 - settings.beta1),
                                    static_cast<float>(settings.beta2),
                                    static_cast<float>(1.0 - settings.beta2),
                                    static_cast<float>(settings.epsilon),
                                    static_cast<float>(settings.learning_rate),
                                    static_cast<float>(settings.learning_rate * settings.weight_decay),
                                    correction(settings.beta1),
                                    correction(settings.beta2)};
               });
}

}  // namespace headway::backend::cuda
