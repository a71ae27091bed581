#include "policies/learning/normaliser.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace headway::policies {

namespace {

constexpr double kLeastVariance = 0.001;  // a feature that hardly varied in training shall not shout later
constexpr double kFarthest = 5.0;

void append_rows(const Normaliser& normaliser, std::span<const FeatureName> names, std::span<const float> rows,
                 std::vector<double>& to) {
    const std::size_t width = normaliser.mean.size();
    if (width == 0 || rows.size() % width != 0) throw std::invalid_argument("features of another width");
    const bool known = names.size() == width;  // toy problems of tests have features of their own, all normalised
    for (std::size_t at = 0; at < rows.size(); at += width) {
        for (std::size_t i = 0; i < width; ++i) {
            const double x = rows[at + i];
            if (normaliser.count < 2.0 || (known && !names[i].normalised)) {
                to.push_back(std::clamp(x, -kFarthest, kFarthest));
                continue;
            }
            const double deviation = std::sqrt(normaliser.squares[i] / normaliser.count + kLeastVariance);
            to.push_back(std::clamp((x - normaliser.mean[i]) / deviation, -kFarthest, kFarthest));
        }
    }
}

}  // namespace

Normaliser empty_normaliser(std::size_t features) {
    return {0.0, std::vector<double>(features, 0.0), std::vector<double>(features, 0.0)};
}

void add_sums(const Normaliser& about, std::span<const float> rows, std::span<double> sums) {
    const std::size_t width = about.mean.size();
    if (width == 0 || rows.size() % width != 0 || sums.size() != 1 + 2 * width) {
        throw std::invalid_argument("features of another width");
    }
    for (std::size_t at = 0; at < rows.size(); at += width) {
        sums[0] += 1.0;
        for (std::size_t i = 0; i < width; ++i) {
            const double difference = rows[at + i] - about.mean[i];
            sums[1 + i] += difference;
            sums[1 + width + i] += difference * difference;
        }
    }
}

void merge(Normaliser& normaliser, std::span<const double> sums) {
    const std::size_t width = normaliser.mean.size();
    const double rows = sums[0];
    if (rows <= 0.0) return;
    const double total = normaliser.count + rows;
    for (std::size_t i = 0; i < width; ++i) {
        const double shift = sums[1 + i] / total;
        normaliser.mean[i] += shift;
        normaliser.squares[i] = std::max(0.0, normaliser.squares[i] + sums[1 + width + i] - total * shift * shift);
    }
    normaliser.count = total;
}

void append_decision(const TrainedPolicy& policy, const Features& features, NetworkInput& input) {
    append_rows(policy.global_normaliser, global_features(), features.global, input.global);
    append_rows(policy.candidate_normaliser, candidate_features(), features.candidates, input.candidates);
    input.gain.insert(input.gain.end(), features.gain.begin(), features.gain.end());
    input.cost.insert(input.cost.end(), features.cost.begin(), features.cost.end());
    input.first.push_back(input.first.back() + features.count());
}

}  // namespace headway::policies
