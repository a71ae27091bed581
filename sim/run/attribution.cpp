#include "sim/run/attribution.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace headway::sim {
namespace {

constexpr std::size_t kRememberedWeights = 1024;

}  // namespace

std::vector<double> Attribution::weigh(const std::vector<int>& causes, const TimeWithout& time_without) {
    const Duration all = time_without(-1);
    std::vector<double> weights;
    for (const int cause : causes)
        weights.push_back(static_cast<double>(std::max<std::int64_t>(0, (all - time_without(cause)).ns())));
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (double& weight : weights) weight = sum > 0.0 ? weight / sum : 1.0 / static_cast<double>(weights.size());
    return weights;
}

void Attribution::split(std::int64_t excess_ns, const std::vector<int>& causes,
                        const std::vector<std::uint64_t>& situation, const TimeWithout& time_without,
                        std::vector<std::int64_t>& costs_ns) {
    if (excess_ns <= 0 || causes.empty()) return;
    std::vector<double> weights{1.0};
    if (causes.size() > 1 && situation.empty()) {
        weights = weigh(causes, time_without);
    } else if (causes.size() > 1) {
        std::vector<std::uint64_t> key = situation;
        for (const int cause : causes) key.push_back(static_cast<std::uint64_t>(cause));
        auto found = weights_.find(key);
        if (found == weights_.end()) {
            if (weights_.size() >= kRememberedWeights) weights_.clear();
            found = weights_.emplace(std::move(key), weigh(causes, time_without)).first;
        }
        weights = found->second;
    }
    // Whole nanoseconds that add up: each cause gets the difference of the rounded running sums.
    double before = 0.0;
    for (std::size_t i = 0; i < causes.size(); ++i) {
        const double after = i + 1 == causes.size() ? 1.0 : before + weights[i];
        costs_ns[static_cast<std::size_t>(causes[i])] += std::llround(static_cast<double>(excess_ns) * after) -
                                                         std::llround(static_cast<double>(excess_ns) * before);
        before = after;
    }
}

}  // namespace headway::sim
