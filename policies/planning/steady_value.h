#pragma once

#include <algorithm>
#include <cmath>

namespace headway::policies {

/// A noisy quantity that mostly stays as it is and now and then jumps: measurements are averaged while they agree, and
/// one that disagrees by far more than noise, or two in a row that disagree by more, start afresh. What it publishes
/// moves only when it is off by more than noise, and is exactly 0 while 0 explains the measurements: so that noise
/// neither makes up stragglers nor plans.
class SteadyValue {
  public:
    /// `noise`: deviation of one measurement; `floor`: differences that are not worth telling; `rough`: an estimate
    /// that the next measurement replaces. Returns whether published() changed.
    bool update(double measured, double noise, double floor, bool rough = false) {
        constexpr double kSure = 4.0;
        constexpr int kAveraged = 12;
        const double far = std::max(2.0 * floor, kSure * noise), off = measured - mean_;
        if (count_ == 0 || rough_ || std::abs(off) > 2.0 * far) {
            mean_ = measured;
            count_ = 1;
            doubt_ = 0.0;
        } else if (std::abs(off) > far) {
            // Of thousands of measurements one is that far off by chance.
            const bool again = doubt_ * off > 0.0;
            if (again) {
                mean_ += 0.5 * (doubt_ + off);
                count_ = 2;
            }
            doubt_ = again ? 0.0 : off;
            if (!again) return false;
        } else {
            doubt_ = 0.0;
            count_ = std::min(count_ + 1, kAveraged);
            mean_ += (measured - mean_) / count_;
        }
        rough_ = rough;
        const double of_mean = noise / std::sqrt(static_cast<double>(count_));
        within_ = std::max(floor, kSure * of_mean);
        const double wanted = std::abs(mean_) < within_ ? 0.0 : mean_;
        const bool differs =
            (wanted == 0.0) != (published_ == 0.0) || std::abs(wanted - published_) > std::max(floor, 2.0 * of_mean);
        if (differs) published_ = wanted;
        return differs;
    }
    double published() const { return published_; }
    bool known() const { return count_ > 0; }
    /// How far off what is published may be.
    double within() const { return within_; }

  private:
    double mean_ = 0.0;
    double published_ = 0.0;
    double within_ = 0.0;
    double doubt_ = 0.0;  ///< how far off the measurement before was that was not believed yet
    int count_ = 0;       ///< measurements in the mean
    bool rough_ = false;
};

}  // namespace headway::policies
