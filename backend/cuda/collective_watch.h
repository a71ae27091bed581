#pragma once

#include <chrono>
#include <optional>

namespace headway::backend {

/// Whether a call on the device takes too long. It may stand behind long computations, so its time begins when the
/// device was seen to have reached it. Names no function of CUDA.
class CollectiveWatch {
  public:
    using Clock = std::chrono::steady_clock;
    enum class State { kWaiting, kRunning, kDone, kLate };

    explicit CollectiveWatch(std::chrono::milliseconds timeout) : timeout_(timeout) {}

    /// What is seen at `now`; `begun` and `ended` say whether the device has passed the call's beginning and end.
    State look(Clock::time_point now, bool begun, bool ended) {
        if (ended) return State::kDone;
        if (!begun) return State::kWaiting;
        if (!since_) since_ = now;
        return now - *since_ > timeout_ ? State::kLate : State::kRunning;
    }

  private:
    std::chrono::milliseconds timeout_;
    std::optional<Clock::time_point> since_;
};

}  // namespace headway::backend
