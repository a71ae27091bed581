#include "scenarios/validation/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>

namespace headway::scenarios {

namespace {

/// Pairs of rows, counted by how the two series order them.
struct RankedPairs {
    std::int64_t concordant_minus_discordant = 0;
    std::int64_t untied_a = 0;
    std::int64_t untied_b = 0;

    void add(double a_first, double a_second, double b_first, double b_second) {
        const int a = (a_first < a_second) - (a_second < a_first);
        const int b = (b_first < b_second) - (b_second < b_first);
        concordant_minus_discordant += a * b;
        untied_a += a != 0;
        untied_b += b != 0;
    }
    std::optional<double> tau_b() const {
        if (untied_a == 0 || untied_b == 0) return std::nullopt;
        return static_cast<double>(concordant_minus_discordant) /
               std::sqrt(static_cast<double>(untied_a) * static_cast<double>(untied_b));
    }
};

}  // namespace

std::optional<double> kendall_tau_b(const std::vector<double>& a, const std::vector<double>& b) {
    if (a.size() != b.size()) throw std::invalid_argument("kendall_tau_b: series of different lengths");
    RankedPairs pairs;
    for (std::size_t i = 0; i < a.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) pairs.add(a[i], a[j], b[i], b[j]);
    }
    return pairs.tau_b();
}

ErrorFigures error_figures(const std::vector<PredictedFigure>& rows) {
    ErrorFigures figures;
    figures.rows = static_cast<int>(rows.size());
    if (rows.empty()) return figures;
    double absolute = 0.0, sum = 0.0, worst = 0.0;
    RankedPairs pairs;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const double error = (rows[i].predicted - rows[i].measured) / rows[i].measured;
        absolute += std::abs(error);
        sum += error;
        worst = std::max(worst, std::abs(error));
        for (std::size_t j = 0; j < i; ++j) {
            if (rows[i].group != rows[j].group) continue;
            pairs.add(rows[i].measured, rows[j].measured, rows[i].predicted, rows[j].predicted);
        }
    }
    const double count = static_cast<double>(rows.size());
    figures.mape = absolute / count;
    figures.bias = sum / count;
    figures.worst = worst;
    figures.kendall_tau = pairs.tau_b();
    return figures;
}

}  // namespace headway::scenarios
