#pragma once

#include <cmath>
#include <compare>
#include <cstdint>

/// Physical quantities as types. A quantity never converts to a bare number by itself: the unit is in the name of the
/// accessor. Time and bytes are integers, so that sums are exact and records are reproducible.
namespace headway::scenarios {

/// A span of time (or a point on the run's own clock, counted from its start), in whole nanoseconds.
class Duration {
  public:
    constexpr Duration() = default;
    static constexpr Duration nanoseconds(std::int64_t value) { return Duration(value); }
    /// Rounds to the nearest nanosecond.
    static Duration seconds(double value) { return Duration(std::llround(value * 1e9)); }
    static Duration milliseconds(double value) { return Duration(std::llround(value * 1e6)); }
    static Duration microseconds(double value) { return Duration(std::llround(value * 1e3)); }

    constexpr std::int64_t ns() const { return ns_; }
    constexpr double s() const { return static_cast<double>(ns_) * 1e-9; }
    constexpr double ms() const { return static_cast<double>(ns_) * 1e-6; }
    constexpr double us() const { return static_cast<double>(ns_) * 1e-3; }

    constexpr auto operator<=>(const Duration&) const = default;
    constexpr Duration& operator+=(Duration other) {
        ns_ += other.ns_;
        return *this;
    }
    constexpr Duration& operator-=(Duration other) {
        ns_ -= other.ns_;
        return *this;
    }
    friend constexpr Duration operator+(Duration a, Duration b) { return a += b; }
    friend constexpr Duration operator-(Duration a, Duration b) { return a -= b; }
    friend constexpr Duration operator*(Duration a, std::int64_t n) { return Duration(a.ns_ * n); }
    friend constexpr double operator/(Duration a, Duration b) {
        return static_cast<double>(a.ns_) / static_cast<double>(b.ns_);
    }
    /// Scales and rounds to the nearest nanosecond.
    Duration scaled(double factor) const {
        const double ns = static_cast<double>(ns_) * factor;  // what llround does, without a call
        return Duration(static_cast<std::int64_t>(ns < 0.0 ? ns - 0.5 : ns + 0.5));
    }

  private:
    explicit constexpr Duration(std::int64_t ns) : ns_(ns) {}
    std::int64_t ns_ = 0;
};

/// An amount of data, in whole bytes. GB is 10^9 bytes, GiB is 2^30 bytes.
class Bytes {
  public:
    constexpr Bytes() = default;
    constexpr explicit Bytes(std::int64_t count) : count_(count) {}
    static Bytes gib(double value) { return Bytes(std::llround(value * 1073741824.0)); }
    static Bytes gb(double value) { return Bytes(std::llround(value * 1e9)); }

    constexpr std::int64_t count() const { return count_; }
    constexpr double in_gib() const { return static_cast<double>(count_) / 1073741824.0; }
    constexpr double in_gb() const { return static_cast<double>(count_) * 1e-9; }

    constexpr auto operator<=>(const Bytes&) const = default;
    constexpr Bytes& operator+=(Bytes other) {
        count_ += other.count_;
        return *this;
    }
    friend constexpr Bytes operator+(Bytes a, Bytes b) { return a += b; }
    friend constexpr Bytes operator-(Bytes a, Bytes b) { return Bytes(a.count_ - b.count_); }
    friend constexpr Bytes operator*(Bytes a, std::int64_t n) { return Bytes(a.count_ * n); }
    friend constexpr double operator/(Bytes a, Bytes b) {
        return static_cast<double>(a.count_) / static_cast<double>(b.count_);
    }

  private:
    std::int64_t count_ = 0;
};

/// A real-valued quantity with its unit in the type; `Tag` only tells the types apart.
template <class Tag>
struct Quantity {
    double value = 0.0;
    constexpr auto operator<=>(const Quantity&) const = default;
    friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.value + b.value}; }
    friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.value - b.value}; }
    friend constexpr Quantity operator*(Quantity a, double factor) { return {a.value * factor}; }
    friend constexpr double operator/(Quantity a, Quantity b) { return a.value / b.value; }
};

using BytesPerSecond = Quantity<struct BytesPerSecondTag>;  ///< bytes a second (not bits)
using Flops = Quantity<struct FlopsTag>;                    ///< floating-point operations (a multiply-add counts 2)
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag>;  ///< floating-point operations a second
using Celsius = Quantity<struct CelsiusTag>;                ///< degrees Celsius (also differences)
using Watts = Quantity<struct WattsTag>;                    ///< electrical power
using Megahertz = Quantity<struct MegahertzTag>;            ///< SM clock
using KelvinPerWatt = Quantity<struct KelvinPerWattTag>;    ///< thermal resistance

inline Duration operator/(Bytes amount, BytesPerSecond rate) {
    return Duration::seconds(static_cast<double>(amount.count()) / rate.value);
}
inline Duration operator/(Flops work, FlopsPerSecond rate) {
    return Duration::seconds(work.value / rate.value);
}

}  // namespace headway::scenarios
