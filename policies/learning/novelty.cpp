#include "policies/learning/novelty.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace headway::policies {

double raw_novelty(std::span<const FeatureRange> ranges, std::span<const float> features) {
    constexpr double kNarrowest = 0.5;
    constexpr double kMost = 5.0;
    if (ranges.empty() || ranges.size() != features.size()) return 0.0;
    double sum = 0.0;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        const double outside = std::max({0.0, ranges[i].low - features[i], features[i] - ranges[i].high});
        const double excess = std::min(kMost, outside / (0.5 * std::max(ranges[i].high - ranges[i].low, kNarrowest)));
        sum += excess * excess;
    }
    return std::sqrt(sum / static_cast<double>(ranges.size()));
}

double novelty_of(const TrainedPolicy& policy, std::span<const float> global) {
    constexpr double kLeastLimit = 0.15;
    return raw_novelty(policy.global_ranges, global) / std::max(policy.novelty_limit, kLeastLimit);
}

}  // namespace headway::policies
