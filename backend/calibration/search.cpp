#include <algorithm>
#include <cmath>

#include "backend/calibration/fit.h"

namespace headway::backend {

namespace {

constexpr int kSweeps = 60;
constexpr int kSections = 28;  ///< golden sections of one value: 0.618^28 of its range is left
constexpr double kGolden = 0.6180339887498949;
constexpr double kSettled = 1e-10;  ///< relative gain of a sweep below which the search ends

}  // namespace

std::vector<double> smallest_at(const std::vector<SearchedValue>& values,
                                const std::function<double(std::span<const double>)>& function) {
    std::vector<double> at;
    for (const SearchedValue& value : values) at.push_back(std::clamp(value.start, value.low, value.high));
    double best = function(at);
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
        const double before = best;
        for (std::size_t v = 0; v < values.size(); ++v) {
            std::vector<double> trial = at;
            const auto cost = [&](double logarithm) {
                trial[v] = std::exp(logarithm);
                return function(trial);
            };
            // The first sweeps look at the whole range, the later ones nearer and nearer around what was found.
            const double reach = std::log(values[v].high / values[v].low) * std::pow(0.8, sweep);
            double low = std::max(std::log(values[v].low), std::log(at[v]) - reach);
            double high = std::min(std::log(values[v].high), std::log(at[v]) + reach);
            double a = high - kGolden * (high - low), b = low + kGolden * (high - low);
            double cost_a = cost(a), cost_b = cost(b);
            for (int section = 0; section < kSections; ++section) {
                if (cost_a < cost_b) {
                    high = b, b = a, cost_b = cost_a;
                    a = high - kGolden * (high - low), cost_a = cost(a);
                } else {
                    low = a, a = b, cost_a = cost_b;
                    b = low + kGolden * (high - low), cost_b = cost(b);
                }
            }
            const double found = cost_a < cost_b ? a : b;
            if (std::min(cost_a, cost_b) < best) {
                best = std::min(cost_a, cost_b);
                at[v] = std::exp(found);
            }
        }
        if (sweep > 10 && before - best <= kSettled * before) break;
    }
    return at;
}

}  // namespace headway::backend
