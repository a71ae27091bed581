#pragma once

#include <span>

#include "scenarios/language/units.h"

namespace headway::policies {

/// Where the iterations of one decision interval stand: most stay at one level; now and then they change to another
/// one within the interval, and their mean is then neither.
struct IterationTrend {
    scenarios::Duration mean;  ///< of all
    scenarios::Duration now;   ///< level at the end of the interval
    double share = 1.0;        ///< of the interval that is at this level; 1: no change within it
};

/// Finds the last change of level within an interval, by least squares: one iteration may fall between the two levels.
/// Remembers the level of the interval before and how much iterations scatter (jitter, uneven sequences), so that
/// noise is not taken for a change.
class TrendFinder {
  public:
    void start_episode();
    /// Another plan: its level is another.
    void plan_changed() { level_s_ = 0.0; }
    /// `iterations`: one interval's, in order; at least one.
    IterationTrend take(std::span<const scenarios::Duration> iterations);

  private:
    double level_s_ = 0.0;            ///< at the end of the interval before; 0: not known
    double relative_variance_ = 0.0;  ///< of iterations about their level
    int intervals_ = 0;
};

}  // namespace headway::policies
