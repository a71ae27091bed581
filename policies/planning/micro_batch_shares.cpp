#include "policies/planning/micro_batch_shares.h"

#include <algorithm>
#include <cstddef>
#include <queue>
#include <utility>

namespace headway::policies {

namespace {

/// Units [replicas] that all get before anything takes longer than some bound: where the times are about straight
/// lines, all but a few of the units that there are. Empty where lines tell nothing.
std::vector<int> head_start(int replicas, int units, int unit, const std::vector<int>& most, const ReplicaTime& time) {
    struct Line {
        double first, slope;
        int most;
    };
    const int even = units / replicas, wanted = units - 2 * replicas;
    if (even < 4) return {};
    std::vector<Line> lines;
    double low = 0.0, high = 0.0;
    for (int replica = 0; replica < replicas; ++replica) {
        const double first = time(replica, unit), slope = (time(replica, even * unit) - first) / (even - 1);
        if (!(slope > 0.0)) return {};
        lines.push_back({first, slope, most.empty() ? units : most[static_cast<std::size_t>(replica)] / unit});
        high = std::max(high, first + slope * units);
    }
    const auto reached = [](const Line& line, double bound) {
        return static_cast<int>(std::clamp(1.0 + (bound - line.first) / line.slope, 1.0, 1.0 * line.most));
    };
    for (int step = 0; step < 40; ++step) {
        const double bound = 0.5 * (low + high);
        int sum = 0;
        for (const Line& line : lines) sum += reached(line, bound);
        (sum <= wanted ? low : high) = bound;
    }
    std::vector<int> start;
    int sum = 0;
    for (int replica = 0; replica < replicas; ++replica) {
        const Line& line = lines[static_cast<std::size_t>(replica)];
        int count = reached(line, low);
        while (count > 1 && time(replica, count * unit) > low) --count;
        while (count < line.most && sum <= units && time(replica, (count + 1) * unit) <= low) {
            ++count;
            if (sum + count > units) return {};
        }
        start.push_back(count);
        sum += count;
    }
    if (sum > units) start.clear();
    return start;
}

}  // namespace

std::optional<std::vector<int>> share_micro_batches(int replicas, const ShareLimits& limits, const ReplicaTime& time) {
    const int unit = limits.multiple;
    if (replicas < 1 || unit < 1 || limits.total % unit != 0 || limits.total < replicas * unit) return std::nullopt;
    const auto room = [&](int replica, int share) {
        return limits.most.empty() || share <= limits.most[static_cast<std::size_t>(replica)];
    };
    for (int replica = 0; replica < replicas; ++replica)
        if (!room(replica, unit)) return std::nullopt;
    std::vector<int> shares = head_start(replicas, limits.total / unit, unit, limits.most, time);
    if (shares.empty()) shares.assign(static_cast<std::size_t>(replicas), 1);
    int left = limits.total;
    for (int& share : shares) left -= share *= unit;
    // By the time with one unit more.
    using Next = std::pair<double, int>;
    std::priority_queue<Next, std::vector<Next>, std::greater<>> next;
    for (int replica = 0; replica < replicas; ++replica) {
        const int more = shares[static_cast<std::size_t>(replica)] + unit;
        if (room(replica, more)) next.emplace(time(replica, more), replica);
    }
    for (; left > 0; left -= unit) {
        if (next.empty()) return std::nullopt;
        const int replica = next.top().second;
        next.pop();
        int& share = shares[static_cast<std::size_t>(replica)];
        share += unit;
        if (left > unit && room(replica, share + unit)) next.emplace(time(replica, share + unit), replica);
    }
    return shares;
}

}  // namespace headway::policies
