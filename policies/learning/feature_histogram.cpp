#include "policies/learning/feature_histogram.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace headway::policies {

FeatureHistogram::FeatureHistogram(std::size_t features) : counts_(features * kBins, 0.0) {}

void FeatureHistogram::add(std::span<const float> features) {
    if (features.size() * kBins != counts_.size()) throw std::invalid_argument("histogram of other features");
    for (std::size_t i = 0; i < features.size(); ++i) {
        const double bin = std::floor((features[i] - kLow) / kWidth);
        counts_[i * kBins + static_cast<std::size_t>(std::clamp(bin, 0.0, kBins - 1.0))] += 1.0;
    }
}

void FeatureHistogram::merge(const FeatureHistogram& other) {
    if (other.counts_.size() != counts_.size()) throw std::invalid_argument("histogram of other features");
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
}

std::vector<FeatureRange> FeatureHistogram::ranges(double tail) const {
    std::vector<FeatureRange> result;
    for (std::size_t at = 0; at < counts_.size(); at += kBins) {
        double total = 0.0;
        for (int bin = 0; bin < kBins; ++bin) total += counts_[at + static_cast<std::size_t>(bin)];
        const double most = tail * total;
        int low = 0;
        for (double below = 0.0; low < kBins - 1; ++low) {
            below += counts_[at + static_cast<std::size_t>(low)];
            if (below > most) break;
        }
        int high = kBins - 1;
        for (double above = 0.0; high > low; --high) {
            above += counts_[at + static_cast<std::size_t>(high)];
            if (above > most) break;
        }
        result.push_back({kLow + kWidth * low, kLow + kWidth * (high + 1)});
    }
    return result;
}

void NoveltyHistogram::add(double novelty) {
    counts_[static_cast<std::size_t>(std::clamp(std::floor(novelty * 100.0), 0.0, kBins - 1.0))] += 1.0;
}

void NoveltyHistogram::merge(const NoveltyHistogram& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] = 0.9 * counts_[i] + other.counts_[i];
}

double NoveltyHistogram::quantile(double share) const {
    double total = 0.0;
    for (const double count : counts_) total += count;
    double below = 0.0;
    for (std::size_t bin = 0; bin < counts_.size(); ++bin) {
        below += counts_[bin];
        if (below >= share * total) return bin == 0 ? 0.0 : 0.01 * static_cast<double>(bin + 1);
    }
    return 0.01 * kBins;
}

}  // namespace headway::policies
