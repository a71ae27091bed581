#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <vector>

namespace headway::tests {

/// A matrix as the tests see it: float64, on the host, row by row.
struct Values {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::vector<double> at;

    Values() = default;
    Values(std::int64_t with_rows, std::int64_t with_columns, double value = 0.0)
        : rows(with_rows), columns(with_columns), at(static_cast<std::size_t>(with_rows * with_columns), value) {}

    double& operator()(std::int64_t row, std::int64_t column) {
        return at[static_cast<std::size_t>(row * columns + column)];
    }
    double operator()(std::int64_t row, std::int64_t column) const {
        return at[static_cast<std::size_t>(row * columns + column)];
    }
};

/// The nearest bfloat16, so that a value means the same on every device.
double rounded_to_bfloat16(double value);

/// Random inputs, each a bfloat16. The same in every run.
class RandomValues {
  public:
    explicit RandomValues(std::uint64_t seed) : engine_(seed) {}
    Values between(double low, double high, std::int64_t rows, std::int64_t columns);
    Values normal(double deviation, std::int64_t rows, std::int64_t columns);
    /// Whole numbers in [low, high].
    Values whole(std::int64_t low, std::int64_t high, std::int64_t rows, std::int64_t columns);

  private:
    std::mt19937_64 engine_;
};

/// Largest difference over the largest absolute value of `expected` (over 1 where that is 0); infinity for a value
/// that is not finite.
double relative_error(const Values& actual, const Values& expected);

}  // namespace headway::tests
