#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "scenarios/language/random.h"

/// How good a policy is over many scenarios: the measures by which policies are compared. Goodputs are [scenarios], of
/// the same scenarios in the same order for every policy. All throw std::invalid_argument for lengths that differ.
namespace headway::policies {

/// The oracle must gain more than this on static for a scenario to count as recoverable, and a policy that ends more
/// than this below static has lost the scenario. Relative.
inline constexpr double kWorthCounting = 0.01;

/// Sum of (policy - static) over sum of (oracle - static), over the scenarios where the oracle gains more than 1 %:
/// which share of the loss that can be recovered was. Absent where there is no such scenario.
std::optional<double> recovered_share(std::span<const double> policy, std::span<const double> do_nothing,
                                      std::span<const double> oracle);

/// Share of the scenarios in which the policy ends more than 1 % below static. 0 for no scenarios.
double lost_fraction(std::span<const double> policy, std::span<const double> do_nothing);

/// 0 for no scenarios.
double mean_goodput(std::span<const double> policy);

/// Interval in which a figure lies with 95 % confidence.
struct ConfidenceInterval {
    double low = 0.0;
    double high = 0.0;
};

/// A figure over drawn scenarios (indices, repeated ones count again); absent where it is not defined for them.
using ScenarioStatistic = std::function<std::optional<double>(std::span<const std::size_t> drawn)>;

/// Percentile bootstrap (Efron 1979): scenarios are drawn with replacement, `resamples` times; a statistic of two
/// policies' difference on the same drawn scenarios gives a paired interval. Draws for which the statistic is not
/// defined are left out; absent when most are. Deterministic for a stream.
std::optional<ConfidenceInterval> bootstrap_interval(std::size_t scenarios, const ScenarioStatistic& statistic,
                                                     scenarios::RandomStream stream, int resamples = 2000);

/// Goodputs of the drawn scenarios.
std::vector<double> drawn_goodputs(std::span<const double> goodputs, std::span<const std::size_t> drawn);

}  // namespace headway::policies
