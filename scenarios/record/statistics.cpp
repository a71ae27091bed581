#include "scenarios/record/statistics.h"

#include <cmath>
#include <numbers>
#include <numeric>
#include <stdexcept>

namespace headway::scenarios {

namespace {

/// Probability that Student's t lies in (-t, t), by the finite series for whole degrees of freedom (Abramowitz and
/// Stegun, 26.7.3 and 26.7.4).
double student_two_sided(double t, int n) {
    const double theta = std::atan(t / std::sqrt(static_cast<double>(n)));
    const double cosine = std::cos(theta);
    if (n == 1) return 2.0 * theta / std::numbers::pi;
    const bool odd = n % 2 == 1;
    double term = odd ? cosine : 1.0;
    double sum = term;
    for (int k = odd ? 3 : 2; k <= n - 2; k += 2) {
        term *= cosine * cosine * (k - 1) / k;
        sum += term;
    }
    if (odd) return 2.0 / std::numbers::pi * (theta + std::sin(theta) * sum);
    return std::sin(theta) * sum;
}

}  // namespace

double student_t_975(int degrees_of_freedom) {
    if (degrees_of_freedom < 1) throw std::invalid_argument("Student's t needs at least 1 degree of freedom");
    double low = 1.0;
    double high = 13.0;  // 12.706 for one degree of freedom, less for more
    for (int step = 0; step < 60; ++step) {
        const double middle = 0.5 * (low + high);
        (student_two_sided(middle, degrees_of_freedom) < 0.95 ? low : high) = middle;
    }
    return 0.5 * (low + high);
}

Estimate estimate_mean(const std::vector<double>& values) {
    if (values.empty()) throw std::invalid_argument("a mean of nothing");
    const double n = static_cast<double>(values.size());
    Estimate estimate;
    estimate.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
    if (values.size() < 2) return estimate;
    double squares = 0.0;
    for (const double value : values) squares += (value - estimate.mean) * (value - estimate.mean);
    estimate.half_width =
        student_t_975(static_cast<int>(values.size()) - 1) * std::sqrt(squares / (n - 1.0)) / std::sqrt(n);
    return estimate;
}

}  // namespace headway::scenarios
