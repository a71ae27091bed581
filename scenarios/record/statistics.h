#pragma once

#include <optional>
#include <vector>

namespace headway::scenarios {

/// Mean of a figure over runs with different seeds and the half-width of its 95 % confidence interval, t s / sqrt(n)
/// with Student's t for n - 1 degrees of freedom; no interval for one run.
struct Estimate {
    double mean = 0.0;
    std::optional<double> half_width;
};

/// Throws std::invalid_argument for no values.
Estimate estimate_mean(const std::vector<double>& values);

/// Student's t: the value that is not exceeded with probability 0.975, to 5 digits. Throws std::invalid_argument below
/// 1 degree of freedom.
double student_t_975(int degrees_of_freedom);

}  // namespace headway::scenarios
