#pragma once

#include <span>
#include <vector>

#include "policies/learning/novelty.h"

namespace headway::policies {

/// How often each feature had which value: bins of 0.05 over -8..8, what lies beyond in the outermost. Counts add up
/// over processes.
class FeatureHistogram {
  public:
    explicit FeatureHistogram(std::size_t features = 0);
    void add(std::span<const float> features);  ///< throws std::invalid_argument for another number
    void merge(const FeatureHistogram& other);
    std::span<double> counts() { return counts_; }
    std::vector<double>& data() { return counts_; }
    const std::vector<double>& data() const { return counts_; }
    /// Per feature the edges of the bins below and above which no more than `tail` of the values lies.
    std::vector<FeatureRange> ranges(double tail) const;

    static constexpr int kBins = 320;
    static constexpr double kLow = -8.0;
    static constexpr double kWidth = 0.05;

  private:
    std::vector<double> counts_;  ///< [features x kBins]
};

/// The same for novelties: bins of 0.01 over 0..4.
class NoveltyHistogram {
  public:
    NoveltyHistogram() : counts_(kBins, 0.0) {}
    void add(double novelty);
    /// Older counts weigh nine tenths: ranges move while training goes on.
    void merge(const NoveltyHistogram& other);
    std::span<double> counts() { return counts_; }
    std::vector<double>& data() { return counts_; }
    const std::vector<double>& data() const { return counts_; }
    double quantile(double share) const;  ///< upper edge of its bin; 0 where nothing lies above the first bin

  private:
    static constexpr int kBins = 400;
    std::vector<double> counts_;
};

}  // namespace headway::policies
