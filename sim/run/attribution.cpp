#include "sim/run/attribution.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace headway::sim {
namespace {

constexpr std::size_t kRememberedWeights = 1024;

}  // namespace

void Attribution::split(PlanModel& model, std::int64_t excess_ns, const std::vector<int>& causes,
                        const std::vector<std::uint64_t>& situation, const StateWithout& state_without,
                        std::vector<std::int64_t>& costs_ns) {
    if (excess_ns <= 0 || causes.empty()) return;
    if (causes.size() == 1) {
        costs_ns[static_cast<std::size_t>(causes[0])] += excess_ns;
        return;
    }
    std::vector<std::uint64_t> key = situation;
    for (const int cause : causes) key.push_back(static_cast<std::uint64_t>(cause));
    auto found = weights_.find(key);
    if (found == weights_.end()) {
        const auto time_of = [&](const ClusterState& state) { return model.steady(state, &state).duration.ns(); };
        const std::int64_t all = time_of(state_without(-1));
        std::vector<double> weights;
        for (const int cause : causes)
            weights.push_back(static_cast<double>(std::max<std::int64_t>(0, all - time_of(state_without(cause)))));
        const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
        for (double& weight : weights) weight = sum > 0.0 ? weight / sum : 1.0 / static_cast<double>(weights.size());
        if (weights_.size() >= kRememberedWeights) weights_.clear();
        found = weights_.emplace(std::move(key), std::move(weights)).first;
    }
    // Whole nanoseconds that add up: each cause gets the difference of the rounded running sums.
    double before = 0.0;
    for (std::size_t i = 0; i < causes.size(); ++i) {
        const double after = i + 1 == causes.size() ? 1.0 : before + found->second[i];
        costs_ns[static_cast<std::size_t>(causes[i])] +=
            std::llround(static_cast<double>(excess_ns) * after) - std::llround(static_cast<double>(excess_ns) * before);
        before = after;
    }
}

}  // namespace headway::sim
