#include "policies/planning/layer_split.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace headway::policies {

namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();

/// Times of all stages with all numbers of layers, and the best split under a bound on the slowest stage.
class SplitTable {
  public:
    SplitTable(int stages, const SplitLimits& limits, const StageTime& time)
        : stages_(static_cast<std::size_t>(stages)),
          layers_(static_cast<std::size_t>(limits.layers)),
          least_(static_cast<std::size_t>(limits.least)) {
        for (std::size_t s = 0; s < stages_; ++s) {
            most_.push_back(layers_);
            if (!limits.most.empty())
                most_.back() = static_cast<std::size_t>(std::clamp(limits.most[s], 0, limits.layers));
            for (std::size_t n = 0; n <= layers_; ++n)
                times_.push_back(n >= least_ && n <= most_.back() ? time(static_cast<int>(s), static_cast<int>(n))
                                                                  : kImpossible);
        }
    }

    double at(std::size_t stage, std::size_t layers) const { return times_[stage * (layers_ + 1) + layers]; }

    /// All times that the slowest stage can have, ascending.
    std::vector<double> bounds() const {
        std::vector<double> values;
        for (std::size_t s = 0; s < stages_; ++s) {
            const double* row = &times_[s * (layers_ + 1)];
            if (s > 0 && std::equal(row, row + layers_ + 1, row - (layers_ + 1))) continue;  // stages are often alike
            for (std::size_t n = 0; n <= layers_; ++n)
                if (row[n] < kImpossible) values.push_back(row[n]);
        }
        std::sort(values.begin(), values.end());
        values.erase(std::unique(values.begin(), values.end()), values.end());
        return values;
    }

    /// Whether no stage need take longer than `bound`.
    bool possible(double bound) const {
        std::size_t room = 0;
        for (std::size_t s = 0; s < stages_; ++s) {
            const std::size_t most = most_within(s, bound);
            if (most < least_ || at(s, least_) > bound) return false;
            room += most;
        }
        return room >= layers_;
    }

    /// Least sum with no stage beyond `bound`, and its split.
    double least_sum(double bound, std::vector<int>& split) {
        best_.assign((stages_ + 1) * (layers_ + 1), kImpossible);
        best_[0] = 0.0;
        for (std::size_t s = 0; s < stages_; ++s) {
            const double* before = &best_[s * (layers_ + 1)];
            double* after = &best_[(s + 1) * (layers_ + 1)];
            const std::size_t most = most_within(s, bound);
            for (std::size_t n = least_; n <= most; ++n)
                for (std::size_t used = 0; used + n <= layers_; ++used)
                    after[used + n] = std::min(after[used + n], before[used] + at(s, n));
        }
        const double sum = best_[stages_ * (layers_ + 1) + layers_];
        if (sum == kImpossible) return sum;
        split.assign(stages_, 0);
        std::size_t left = layers_;
        for (std::size_t s = stages_; s-- > 0;) {
            const double* before = &best_[s * (layers_ + 1)];
            std::size_t n = least_;  // the fewest, so that earlier stages get more
            while (before[left - n] + at(s, n) != best_[(s + 1) * (layers_ + 1) + left]) ++n;
            split[s] = static_cast<int>(n);
            left -= n;
        }
        return sum;
    }

    /// No split has a smaller sum: the least of all stages, and every further layer at the smallest rise that one has.
    double sum_at_least() const {
        double sum = 0.0, rise = kImpossible;
        for (std::size_t s = 0; s < stages_; ++s) {
            if (most_[s] < least_) return kImpossible;
            sum += at(s, least_);
            for (std::size_t n = least_ + 1; n <= most_[s]; ++n)
                rise = std::min(rise, (at(s, n) - at(s, least_)) / static_cast<double>(n - least_));
        }
        const std::size_t further = layers_ - stages_ * least_;
        return (further == 0 ? sum : sum + rise * static_cast<double>(further)) * (1.0 - 1e-12);
    }

  private:
    std::size_t most_within(std::size_t stage, double bound) const {
        const double* first = &times_[stage * (layers_ + 1)];
        const double* end = std::upper_bound(first + std::min(least_, most_[stage]), first + most_[stage] + 1, bound);
        return end == first ? 0 : static_cast<std::size_t>(end - first) - 1;
    }

    std::size_t stages_, layers_, least_;
    std::vector<std::size_t> most_;
    std::vector<double> times_;  // [stage][layers]
    std::vector<double> best_;   // [stages before][layers used]
};

}  // namespace

std::optional<std::vector<int>> split_layers(int stages, int micro_batches, const SplitLimits& limits,
                                             const StageTime& time) {
    if (stages < 1 || limits.layers < stages * limits.least) return std::nullopt;
    SplitTable table(stages, limits, time);
    const std::vector<double> bounds = table.bounds();
    const auto first =
        std::partition_point(bounds.begin(), bounds.end(), [&](double bound) { return !table.possible(bound); });
    const double weight = std::max(0, micro_batches - 1);
    const double sum_at_least = table.sum_at_least();
    std::optional<std::vector<int>> best;
    double best_value = kImpossible;
    std::vector<int> split;
    for (auto bound = first; bound != bounds.end() && weight * *bound + sum_at_least < best_value; ++bound) {
        const double sum = table.least_sum(*bound, split);
        const double value = weight * *bound + sum;
        if (!(value < best_value)) continue;
        best_value = value;
        best = split;
    }
    return best;
}

}  // namespace headway::policies
