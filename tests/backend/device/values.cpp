#include "tests/backend/device/values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace headway::tests {

double rounded_to_bfloat16(double value) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    return std::bit_cast<float>((bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u);
}

Values RandomValues::between(double low, double high, std::int64_t rows, std::int64_t columns) {
    std::uniform_real_distribution<double> distribution(low, high);
    Values values(rows, columns);
    for (double& value : values.at) value = rounded_to_bfloat16(distribution(engine_));
    return values;
}

Values RandomValues::normal(double deviation, std::int64_t rows, std::int64_t columns) {
    std::normal_distribution<double> distribution(0.0, deviation);
    Values values(rows, columns);
    for (double& value : values.at) value = rounded_to_bfloat16(distribution(engine_));
    return values;
}

Values RandomValues::whole(std::int64_t low, std::int64_t high, std::int64_t rows, std::int64_t columns) {
    std::uniform_int_distribution<std::int64_t> distribution(low, high);
    Values values(rows, columns);
    for (double& value : values.at) value = static_cast<double>(distribution(engine_));
    return values;
}

double relative_error(const Values& actual, const Values& expected) {
    if (actual.rows != expected.rows || actual.columns != expected.columns)
        return std::numeric_limits<double>::infinity();
    double largest = 0.0, error = 0.0;
    for (std::size_t i = 0; i < expected.at.size(); ++i) {
        if (!std::isfinite(actual.at[i])) return std::numeric_limits<double>::infinity();
        largest = std::max(largest, std::abs(expected.at[i]));
        error = std::max(error, std::abs(actual.at[i] - expected.at[i]));
    }
    return error / (largest > 0.0 ? largest : 1.0);
}

}  // namespace headway::tests
