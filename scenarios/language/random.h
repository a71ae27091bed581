#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

/// Randomness by name: every use has a stream of its own, derived from the scenario's seed and the use's name, so that
/// a new use changes no other's numbers. Only integer arithmetic and correctly rounded operations (+ - * / sqrt) are
/// used, so that the numbers are the same on every machine and with every standard library.
namespace headway::scenarios {

class RandomStream {
  public:
    /// `index` tells apart many streams of one use (GPUs, iterations, ...).
    RandomStream(std::uint64_t seed, std::string_view name, std::uint64_t index = 0);

    /// xoshiro256** (Blackman and Vigna 2018).
    std::uint64_t next();
    /// In [0, 1).
    double uniform();
    double uniform(double min, double max) { return min + (max - min) * uniform(); }
    /// A whole number in [0, count). Throws std::invalid_argument if `count` < 1.
    std::int64_t below(std::int64_t count);
    /// Mean 0, deviation 1 (Marsaglia's polar method).
    double normal();
    /// Mean 1.
    double exponential();
    /// Uniform in the logarithm; both ends above 0.
    double log_uniform(double min, double max);

  private:
    std::array<std::uint64_t, 4> state_{};
    double spare_normal_ = 0.0;
    bool has_spare_ = false;
};

/// Natural logarithm and exponential to about 1 unit in the 15th digit, the same on every machine. `portable_log` takes
/// positive normal numbers, `portable_exp` numbers from -700 to 700.
double portable_log(double x);
double portable_exp(double x);
/// Each value by its exponential: to the bit what portable_exp gives, four at a time.
void portable_exp(std::span<double> values);

}  // namespace headway::scenarios
