#include "policies/planning/micro_batch_shares.h"

#include <cstddef>
#include <queue>
#include <utility>

namespace headway::policies {

std::optional<std::vector<int>> share_micro_batches(int replicas, const ShareLimits& limits, const ReplicaTime& time) {
    const int unit = limits.multiple;
    if (replicas < 1 || unit < 1 || limits.total % unit != 0 || limits.total < replicas * unit) return std::nullopt;
    const auto room = [&](int replica, int share) {
        return limits.most.empty() || share <= limits.most[static_cast<std::size_t>(replica)];
    };
    std::vector<int> shares(static_cast<std::size_t>(replicas), unit);
    // By the time with one unit more.
    using Next = std::pair<double, int>;
    std::priority_queue<Next, std::vector<Next>, std::greater<>> next;
    for (int replica = 0; replica < replicas; ++replica) {
        if (!room(replica, unit)) return std::nullopt;
        if (room(replica, 2 * unit)) next.emplace(time(replica, 2 * unit), replica);
    }
    for (int left = limits.total - replicas * unit; left > 0; left -= unit) {
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
