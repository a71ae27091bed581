#include "backend/host/kernels/elementwise.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "backend/host/kernels/lanes.h"

namespace headway::backend::host {

namespace {

constexpr double kGeluScale = 0.79788456080286535588;  // sqrt(2 / pi)
constexpr double kGeluCube = 0.044715;

/// 1 / (1 + e^-x)
template <typename Real>
Lanes<Real> logistic(Lanes<Real> x) {
    return Real(1) / (Real(1) + exponential(-x));
}

/// body(at, r) over all rows.
template <typename Real, typename Body>
void over_rows(std::int64_t rows, std::int64_t columns, Body body) {
    for (std::int64_t r = 0; r < rows; ++r) over_lanes<Real>(columns, [&](auto at) { body(at, r); });
}

}  // namespace

template <typename Real>
void add_bias(Matrix<Real> x, const Real* bias) {
    over_rows<Real>(x.rows, x.columns,
                    [&](auto at, std::int64_t r) { at.store(x.row(r), at.load(x.row(r)) + at.load(bias)); });
}

template <typename Real>
void bias_gradient(Matrix<const Real> dy, Real* dbias) {
    over_rows<Real>(dy.rows, dy.columns,
                    [&](auto at, std::int64_t r) { at.store(dbias, at.load(dbias) + at.load(dy.row(r))); });
}

// (1 + tanh u) / 2 is the logistic function of 2u, which keeps its relative precision for negative x.
template <typename Real>
void gelu(Matrix<const Real> x, Matrix<Real> y) {
    constexpr Real kLinear = Real(2 * kGeluScale), kCubic = Real(2 * kGeluScale * kGeluCube);
    over_rows<Real>(x.rows, x.columns, [&](auto at, std::int64_t r) {
        const Lanes<Real> in = at.load(x.row(r));
        at.store(y.row(r), in * logistic<Real>(in * (kLinear + kCubic * in * in)));
    });
}

template <typename Real>
void gelu_gradient(Matrix<const Real> x, Matrix<const Real> dy, Matrix<Real> dx) {
    constexpr Real kLinear = Real(2 * kGeluScale), kCubic = Real(2 * kGeluScale * kGeluCube);
    over_rows<Real>(x.rows, x.columns, [&](auto at, std::int64_t r) {
        const Lanes<Real> in = at.load(x.row(r)), square = in * in;
        const Lanes<Real> share = logistic<Real>(in * (kLinear + kCubic * square));
        const Lanes<Real> slope = share + in * (share * (Real(1) - share)) * (kLinear + 3 * kCubic * square);
        at.store(dx.row(r), at.load(dy.row(r)) * slope);
    });
}

template <typename Real>
void swiglu(Matrix<const Real> gate, Matrix<const Real> up, Matrix<Real> y) {
    over_rows<Real>(y.rows, y.columns, [&](auto at, std::int64_t r) {
        const Lanes<Real> g = at.load(gate.row(r));
        at.store(y.row(r), g * logistic<Real>(g) * at.load(up.row(r)));
    });
}

template <typename Real>
void swiglu_gradient(Matrix<const Real> gate, Matrix<const Real> up, Matrix<const Real> dy, Matrix<Real> dgate,
                     Matrix<Real> dup) {
    over_rows<Real>(dy.rows, dy.columns, [&](auto at, std::int64_t r) {
        const Lanes<Real> g = at.load(gate.row(r)), u = at.load(up.row(r)), d = at.load(dy.row(r));
        const Lanes<Real> share = logistic<Real>(g);
        at.store(dgate.row(r), d * u * (share * (Real(1) + g * (Real(1) - share))));
        at.store(dup.row(r), d * (g * share));
    });
}

template <typename Real>
void add(Matrix<const Real> x, Matrix<Real> y) {
    over_rows<Real>(y.rows, y.columns,
                    [&](auto at, std::int64_t r) { at.store(y.row(r), at.load(y.row(r)) + at.load(x.row(r))); });
}

template <typename Real>
void scale(Matrix<Real> x, Real factor) {
    over_rows<Real>(x.rows, x.columns,
                    [&](auto at, std::int64_t r) { at.store(x.row(r), at.load(x.row(r)) * factor); });
}

template <typename Real>
void fill(Matrix<Real> x, Real value) {
    for (std::int64_t r = 0; r < x.rows; ++r) std::fill_n(x.row(r), x.columns, value);
}

template <typename From, typename To>
void copy(Matrix<const From> from, Matrix<To> to) {
    for (std::int64_t r = 0; r < to.rows; ++r) {
        if constexpr (std::is_same_v<From, To>) {
            std::memmove(to.row(r), from.row(r), static_cast<std::size_t>(to.columns) * sizeof(To));
        } else {
            std::transform(from.row(r), from.row(r) + from.columns, to.row(r),
                           [](From value) { return static_cast<To>(value); });
        }
    }
}

template <typename Element>
void transpose(Matrix<const Element> from, Matrix<Element> to) {
    constexpr std::int64_t kTile = 16;  // of both: fits the first cache whatever the strides
    for (std::int64_t r = 0; r < from.rows; r += kTile)
        for (std::int64_t c = 0; c < from.columns; c += kTile)
            for (std::int64_t j = c; j < std::min(c + kTile, from.columns); ++j)
                for (std::int64_t i = r; i < std::min(r + kTile, from.rows); ++i) to.row(j)[i] = from.row(i)[j];
}

#define HEADWAY_INSTANTIATE(Real)                                                                           \
    template void add_bias(Matrix<Real>, const Real*);                                                      \
    template void bias_gradient(Matrix<const Real>, Real*);                                                 \
    template void gelu(Matrix<const Real>, Matrix<Real>);                                                   \
    template void gelu_gradient(Matrix<const Real>, Matrix<const Real>, Matrix<Real>);                      \
    template void swiglu(Matrix<const Real>, Matrix<const Real>, Matrix<Real>);                             \
    template void swiglu_gradient(Matrix<const Real>, Matrix<const Real>, Matrix<const Real>, Matrix<Real>, \
                                  Matrix<Real>);                                                            \
    template void add(Matrix<const Real>, Matrix<Real>);                                                    \
    template void scale(Matrix<Real>, Real);                                                                \
    template void fill(Matrix<Real>, Real);                                                                 \
    template void copy(Matrix<const Real>, Matrix<Real>);                                                   \
    template void transpose(Matrix<const Real>, Matrix<Real>);
HEADWAY_INSTANTIATE(float)
HEADWAY_INSTANTIATE(double)
#undef HEADWAY_INSTANTIATE
template void fill(Matrix<std::int32_t>, std::int32_t);
template void copy(Matrix<const float>, Matrix<double>);
template void copy(Matrix<const double>, Matrix<float>);
template void copy(Matrix<const std::int32_t>, Matrix<std::int32_t>);
template void transpose(Matrix<const std::int32_t>, Matrix<std::int32_t>);

}  // namespace headway::backend::host
