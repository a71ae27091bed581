#pragma once

#include <chrono>

#include "scenarios/language/units.h"

namespace headway::backend {

/// Time since the episode began, on this machine's monotonic clock. All processes start it together. Before that it
/// shows a time at which no disturbance has begun.
class EpisodeClock {
  public:
    void start() {
        begin_ = std::chrono::steady_clock::now();
        runs_ = true;
    }
    void stop() { runs_ = false; }
    scenarios::Duration now() const {
        if (!runs_) return scenarios::Duration::nanoseconds(-1);
        return scenarios::Duration::nanoseconds(
            std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin_).count());
    }
    std::chrono::steady_clock::time_point at(scenarios::Duration time) const {
        return begin_ + std::chrono::nanoseconds(time.ns());
    }

  private:
    std::chrono::steady_clock::time_point begin_{};
    bool runs_ = false;
};

}  // namespace headway::backend
