#include "policies/planning/iteration_trend.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <vector>

namespace headway::policies {

namespace {

using scenarios::Duration;

constexpr double kLeastLevelChange = 0.01;  ///< of a level: smaller ones are not worth telling
constexpr double kLeastDeviation = 0.001;   ///< of iterations about their level
constexpr double kChangeExplains = 16.0;    ///< variances that a change has to explain: four deviations
constexpr double kBetweenCosts = 4.0;       ///< variances that an iteration between two levels has to explain
constexpr double kVarianceMoves = 0.2;      ///< share of the way that the usual variance goes in an interval

/// Sums of stretches of a series.
class Stretches {
  public:
    explicit Stretches(std::span<const Duration> series) : sum_{0.0}, squares_{0.0} {
        for (const Duration each : series) {
            sum_.push_back(sum_.back() + each.s());
            squares_.push_back(squares_.back() + each.s() * each.s());
        }
    }
    double mean(std::size_t from, std::size_t to) const {
        return (sum_[to] - sum_[from]) / static_cast<double>(to - from);
    }
    /// Sum of squared distances from `level`.
    double about(double level, std::size_t from, std::size_t to) const {
        const double count = static_cast<double>(to - from);
        return std::max(0.0,
                        squares_[to] - squares_[from] - 2.0 * level * (sum_[to] - sum_[from]) + count * level * level);
    }

  private:
    std::vector<double> sum_, squares_;
};

}  // namespace

void TrendFinder::start_episode() {
    level_s_ = 0.0;
    relative_variance_ = 0.0;
    intervals_ = 0;
}

IterationTrend TrendFinder::take(std::span<const Duration> iterations) {
    if (iterations.empty()) throw std::invalid_argument("an interval without iterations has no trend");
    const std::size_t count = iterations.size();
    const Stretches series(iterations);
    const double mean = series.mean(0, count);
    const double deviation = std::max(kLeastDeviation, std::sqrt(relative_variance_)) * mean;
    const double variance = deviation * deviation;

    double level = mean, least = series.about(mean, 0, count), share = 1.0;
    double scatter = least / static_cast<double>(std::max<std::size_t>(1, count - 1));
    // `first` iterations before the change, then one between the levels or none, then the rest. Until something is
    // known of how much iterations scatter, an interval of few says nothing of changes.
    for (std::size_t first = 0; intervals_ > 0 && first < count; ++first)
        for (const std::size_t between : {std::size_t{0}, std::size_t{1}}) {
            const std::size_t changed = first + between;
            if (changed == 0 || changed >= count || (first == 0 && level_s_ <= 0.0)) continue;
            const double before = first > 0 ? series.mean(0, first) : level_s_;
            const double after = series.mean(changed, count);
            if (std::abs(after - before) < kLeastLevelChange * before) continue;
            double at_new = static_cast<double>(count - changed);
            if (between == 1) {
                const double way = (iterations[first].s() - before) / (after - before);
                if (way < 0.0 || way > 1.0) continue;
                at_new += way;
            }
            double off = (first > 0 ? series.about(before, 0, first) : 0.0) + series.about(after, changed, count);
            if (level_s_ > 0.0) off += (before - level_s_) * (before - level_s_);
            const double cost = off + (kChangeExplains + (between == 1 ? kBetweenCosts : 0.0)) * variance;
            if (cost >= least) continue;
            least = cost;
            level = after;
            share = at_new / static_cast<double>(count);
            scatter = off / static_cast<double>(std::max<std::size_t>(1, count - 2));
        }
    const double relative = scatter / (mean * mean);
    // Up at once and down slowly, so that scatter is not taken for changes.
    relative_variance_ = std::max(relative, relative_variance_ + kVarianceMoves * (relative - relative_variance_));
    ++intervals_;
    level_s_ = level;
    return {Duration::seconds(mean), Duration::seconds(level), share};
}

}  // namespace headway::policies
