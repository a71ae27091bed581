#include "policies/evaluation.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace headway::policies {

namespace {

void expect_same_scenarios(std::size_t a, std::size_t b) {
    if (a != b) throw std::invalid_argument("policies are compared over the same scenarios");
}

}  // namespace

std::optional<double> recovered_share(std::span<const double> policy, std::span<const double> do_nothing,
                                      std::span<const double> oracle) {
    expect_same_scenarios(policy.size(), do_nothing.size());
    expect_same_scenarios(oracle.size(), do_nothing.size());
    double gained = 0.0, possible = 0.0;
    for (std::size_t i = 0; i < policy.size(); ++i) {
        if (oracle[i] <= do_nothing[i] * (1.0 + kWorthCounting)) continue;
        gained += policy[i] - do_nothing[i];
        possible += oracle[i] - do_nothing[i];
    }
    if (possible <= 0.0) return std::nullopt;
    return gained / possible;
}

double lost_fraction(std::span<const double> policy, std::span<const double> do_nothing) {
    expect_same_scenarios(policy.size(), do_nothing.size());
    if (policy.empty()) return 0.0;
    std::size_t lost = 0;
    for (std::size_t i = 0; i < policy.size(); ++i)
        if (policy[i] < do_nothing[i] * (1.0 - kWorthCounting)) ++lost;
    return static_cast<double>(lost) / static_cast<double>(policy.size());
}

double mean_goodput(std::span<const double> policy) {
    double sum = 0.0;
    for (const double goodput : policy) sum += goodput;
    return policy.empty() ? 0.0 : sum / static_cast<double>(policy.size());
}

std::optional<ConfidenceInterval> bootstrap_interval(std::size_t scenarios, const ScenarioStatistic& statistic,
                                                     scenarios::RandomStream stream, int resamples) {
    if (resamples < 1) throw std::invalid_argument("a bootstrap needs resamples");
    if (scenarios < 2) return std::nullopt;
    std::vector<std::size_t> drawn(scenarios);
    std::vector<double> values;
    for (int i = 0; i < resamples; ++i) {
        for (std::size_t& index : drawn)
            index = static_cast<std::size_t>(stream.below(static_cast<std::int64_t>(scenarios)));
        if (const std::optional<double> value = statistic(drawn)) values.push_back(*value);
    }
    if (values.size() * 2 < static_cast<std::size_t>(resamples)) return std::nullopt;
    std::sort(values.begin(), values.end());
    const auto at = [&](double share) {
        const double position = share * static_cast<double>(values.size() - 1);
        const auto below = static_cast<std::size_t>(position);
        const std::size_t above = std::min(below + 1, values.size() - 1);
        return values[below] + (values[above] - values[below]) * (position - static_cast<double>(below));
    };
    return ConfidenceInterval{at(0.025), at(0.975)};
}

std::vector<double> drawn_goodputs(std::span<const double> goodputs, std::span<const std::size_t> drawn) {
    std::vector<double> picked;
    picked.reserve(drawn.size());
    for (const std::size_t index : drawn) picked.push_back(goodputs[index]);
    return picked;
}

}  // namespace headway::policies
