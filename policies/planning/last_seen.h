#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "scenarios/language/units.h"

namespace headway::policies {

/// When parts that were slow were measured last: what a plan leaves out is not measured, and may be well again.
///
/// Fail-slow durations are spread over orders of magnitude (tens of seconds to ten hours, in the mean 10 minutes of
/// compute and 24 of communication in a shared cluster; ATC 2025), so that what has been slow for some time is expected
/// to be so for as long again. After that, and ten minutes at least, a part that was left out is taken for healthy: it
/// is then offered again, measured, and where it is still slow left out for twice as long.
class LastSeen {
  public:
    void start(std::size_t parts) { parts_.assign(parts, Part()); }
    void measured(std::size_t part, bool slow, scenarios::Duration now) {
        Part& p = parts_[part];
        if (slow && !p.slow) p.since = now;
        p.slow = slow;
        p.seen = now;
    }
    /// Another one stands in its place.
    void replaced(std::size_t part) { parts_[part] = Part(); }
    /// Slow when it was measured last, and that is too long ago.
    bool may_be_well(std::size_t part, scenarios::Duration now) const {
        const Part& p = parts_[part];
        return p.slow && now - p.seen > std::max(scenarios::Duration::seconds(kLeastWait), p.seen - p.since);
    }

  private:
    static constexpr double kLeastWait = 600.0;
    struct Part {
        bool slow = false;
        scenarios::Duration since, seen;
    };
    std::vector<Part> parts_;
};

}  // namespace headway::policies
