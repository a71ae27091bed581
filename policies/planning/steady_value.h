#pragma once

#include <algorithm>
#include <cmath>

namespace headway::policies {

/// A noisy quantity that mostly stays as it is and now and then jumps: measurements are averaged while they agree, and
/// one that disagrees by more than noise starts afresh. What it publishes moves only when it is off by more than noise,
/// and is exactly 0 while 0 explains the measurements: so that noise neither makes up stragglers nor plans.
class SteadyValue {
  public:
    /// `noise`: deviation of one measurement; `floor`: differences that are not worth telling. `common`: what many like
    /// it have; published where it explains the measurements and 0 does not. Returns whether published() changed.
    bool update(double measured, double noise, double floor, double common = 0.0) {
        constexpr double kSure = 4.0;
        constexpr int kAveraged = 12;
        if (count_ == 0 || std::abs(measured - mean_) > std::max(2.0 * floor, kSure * noise)) {
            mean_ = measured;
            count_ = 1;
        } else {
            count_ = std::min(count_ + 1, kAveraged);
            mean_ += (measured - mean_) / count_;
        }
        const double of_mean = noise / std::sqrt(static_cast<double>(count_));
        const double within = std::max(floor, kSure * of_mean);
        const bool like_many = common != 0.0 && std::abs(mean_ - common) < within;
        const double wanted = std::abs(mean_) < within ? 0.0 : like_many ? common : mean_;
        const bool differs = (wanted == 0.0) != (published_ == 0.0) || (like_many && published_ != wanted) ||
                             std::abs(wanted - published_) > std::max(floor, 2.0 * of_mean);
        if (differs) published_ = wanted;
        return differs;
    }
    double published() const { return published_; }
    bool known() const { return count_ > 0; }

  private:
    double mean_ = 0.0;
    double published_ = 0.0;
    int count_ = 0;  ///< measurements in the mean
};

}  // namespace headway::policies
