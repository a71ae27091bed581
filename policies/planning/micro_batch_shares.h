#pragma once

#include <functional>
#include <optional>
#include <vector>

namespace headway::policies {

/// What shares of micro-batches have to keep to.
struct ShareLimits {
    int total = 1;          ///< micro-batches of an iteration
    int multiple = 1;       ///< every share is one of this (interleaved 1F1B: of the stages)
    std::vector<int> most;  ///< [replicas] that fit in memory; empty: any number
};

/// How long a replica takes for a number of micro-batches, at least 1: does not fall when the number grows.
using ReplicaTime = std::function<double(int replica, int micro_batches)>;

/// Shares [replicas] under which the slowest replica is done as early as it can be, each at least 1. Exact for any
/// monotone times: whoever would be done first with one more gets the next (of equals the first one). Nothing when the
/// limits allow no shares. O((replicas + total) log replicas) at most, O(replicas log replicas) where times are about
/// straight lines.
std::optional<std::vector<int>> share_micro_batches(int replicas, const ShareLimits& limits, const ReplicaTime& time);

}  // namespace headway::policies
