#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

/// Several numbers in one register, for the loops that a compiler may not vectorise by itself: sums (their order is
/// part of the result) and exponentials. Written with the vector types of GCC and Clang, so that no instruction set is
/// named.
namespace headway::backend::host {

template <typename Real>
struct LanesOf {
    static constexpr int kBytes = 32;
    static constexpr int kCount = kBytes / static_cast<int>(sizeof(Real));
    typedef Real Vector __attribute__((vector_size(kBytes)));
};
template <typename Real>
using Lanes = typename LanesOf<std::remove_const_t<Real>>::Vector;
template <typename Real>
inline constexpr std::int64_t kLanes = LanesOf<std::remove_const_t<Real>>::kCount;

template <typename Real>
inline Lanes<Real> load(const Real* from) {
    Lanes<Real> lanes;
    std::memcpy(&lanes, from, sizeof lanes);
    return lanes;
}
template <typename Real>
inline void store(Real* to, Lanes<Real> lanes) {
    std::memcpy(to, &lanes, sizeof lanes);
}
template <typename Real>
inline Lanes<Real> spread(Real value) {
    return Lanes<Real>{} + value;
}
/// The first `many` (fewer than there are lanes); the others are `rest`.
template <typename Real>
inline Lanes<Real> load_some(const Real* from, std::int64_t many, Real rest) {
    Lanes<Real> lanes = spread<Real>(rest);
    for (std::int64_t i = 0; i < many; ++i) lanes[i] = from[i];
    return lanes;
}
template <typename Real>
inline void store_some(Real* to, std::int64_t many, Lanes<Real> lanes) {
    for (std::int64_t i = 0; i < many; ++i) to[i] = lanes[i];
}

template <typename Real>
inline Real sum_of(Lanes<Real> lanes) {
    Real halves[kLanes<Real>];
    std::memcpy(halves, &lanes, sizeof lanes);
    for (std::int64_t width = kLanes<Real> / 2; width > 0; width /= 2)
        for (std::int64_t i = 0; i < width; ++i) halves[i] += halves[i + width];
    return halves[0];
}
template <typename Real>
inline Lanes<Real> larger(Lanes<Real> a, Lanes<Real> b) {
    return a > b ? a : b;
}
template <typename Real>
inline Real largest_of(Lanes<Real> lanes) {
    Real largest = lanes[0];
    for (std::int64_t i = 1; i < kLanes<Real>; ++i) largest = lanes[i] > largest ? lanes[i] : largest;
    return largest;
}

/// e^x to 1e-7 relative, 0 below -87.3, e^88 above 88: by 2^n e^r with |r| <= ln 2 / 2
/// and the Taylor series of e^r to r^7.
inline Lanes<float> exponential(Lanes<float> x) {
    const Lanes<float> lowest = spread(-87.3f), highest = spread(88.0f);
    const auto vanishes = x < lowest;
    x = vanishes ? lowest : x;
    x = x > highest ? highest : x;
    const float shift = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number
    const Lanes<float> shifted = x * 1.44269504088896341f + shift;
    const Lanes<float> whole = shifted - shift;
    const Lanes<float> r = (x - whole * 0.693359375f) + whole * 2.12194440054690583e-4f;  // ln 2 in two parts
    Lanes<float> series = r * (1.0f / 5040.0f) + 1.0f / 720.0f;
    series = series * r + 1.0f / 120.0f;
    series = series * r + 1.0f / 24.0f;
    series = series * r + 1.0f / 6.0f;
    series = series * r + 0.5f;
    series = series * (r * r) + r + 1.0f;
    typedef std::int32_t Whole __attribute__((vector_size(32)));
    const Whole exponent = (std::bit_cast<Whole>(shifted) << 23) + (127 << 23);  // low bits of `shifted` are `whole`
    const Lanes<float> result = series * std::bit_cast<Lanes<float>>(exponent);
    return vanishes ? Lanes<float>{} : result;
}
/// The reference: the library's, one by one.
inline Lanes<double> exponential(Lanes<double> x) {
    for (std::int64_t i = 0; i < kLanes<double>; ++i) x[i] = std::exp(x[i]);
    return x;
}

/// Where a loop over lanes stands: a whole group of them, or what is left at the end of a row.
template <typename Real>
struct WholeLanes {
    std::int64_t index;
    Lanes<Real> load(const Real* from, Real = Real(0)) const { return host::load(from + index); }
    void store(Real* to, Lanes<Real> lanes) const { host::store(to + index, lanes); }
};
template <typename Real>
struct SomeLanes {
    std::int64_t index;
    std::int64_t many;
    Lanes<Real> load(const Real* from, Real rest = Real(0)) const { return load_some(from + index, many, rest); }
    void store(Real* to, Lanes<Real> lanes) const { store_some(to + index, many, lanes); }
};

/// body(at) for consecutive groups of [0, count); `at` loads and stores them.
template <typename Real, typename Body>
inline void over_lanes(std::int64_t count, Body body) {
    std::int64_t i = 0;
    for (; i + kLanes<Real> <= count; i += kLanes<Real>) body(WholeLanes<Real>{i});
    if (i < count) body(SomeLanes<Real>{i, count - i});
}

}  // namespace headway::backend::host
