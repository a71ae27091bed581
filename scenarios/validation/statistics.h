#pragma once

#include <optional>
#include <string>
#include <vector>

namespace headway::scenarios {

/// Kendall's rank correlation tau-b (ties corrected; Kendall 1945) of two equally long series: 1 when they rank alike,
/// -1 when they rank in reverse. Absent for fewer than two pairs and where one series is constant.
std::optional<double> kendall_tau_b(const std::vector<double>& a, const std::vector<double>& b);

/// One predicted row, and the rows it is ranked against.
struct PredictedFigure {
    std::string group;
    double measured = 0.0;
    double predicted = 0.0;
};

/// Figures over a set of rows, as fractions; absent where no row counts.
struct ErrorFigures {
    int rows = 0;
    std::optional<double> mape;   ///< mean absolute error
    std::optional<double> worst;  ///< largest absolute error
    std::optional<double> bias;   ///< mean signed error
    /// Tau-b over the pairs of rows of one group (the concordant minus the discordant pairs of all groups, over the
    /// geometric mean of their untied pairs): rows of different models do not count as ranked.
    std::optional<double> kendall_tau;
};

ErrorFigures error_figures(const std::vector<PredictedFigure>& rows);

}  // namespace headway::scenarios
