#include "sim/run/facility.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace headway::sim {
namespace {

const Duration kStays = Duration::nanoseconds(std::numeric_limits<std::int64_t>::max());

}  // namespace

Facility::Facility(const scenarios::Cluster& cluster, const std::vector<ArrivalEvent>& arrivals)
    : facility_(cluster.facility), arrivals_(arrivals) {
    start();
}

void Facility::start() {
    spares_.assign(static_cast<std::size_t>(std::max(0, facility_.spare_nodes)), {Duration(), kStays});
    for (const ArrivalEvent& arrival : arrivals_) {
        for (int n = 0; n < arrival.nodes; ++n) spares_.push_back({arrival.at, kStays});
        // Nodes that leave again are those that came last.
        for (int n = 0; n > arrival.nodes; --n)
            for (auto spare = spares_.rbegin(); spare != spares_.rend(); ++spare)
                if (spare->until == kStays && spare->from > Duration() && spare->from < arrival.at) {
                    spare->until = arrival.at;
                    break;
                }
    }
}

Facility::Replacement Facility::replace(const Outage& outage, Duration now) {
    Replacement best{std::max(now, outage.repaired), false};
    auto taken = spares_.end();
    for (auto spare = spares_.begin(); spare != spares_.end(); ++spare) {
        const Duration start = std::max(now, spare->from);
        if (start >= spare->until) continue;
        const Duration ready = start + facility_.spare_start;
        if (ready < best.at) {
            best = {ready, true};
            taken = spare;
        }
    }
    if (best.spare) *taken = {outage.repaired, kStays};  // the broken node comes back as a spare
    return best;
}

}  // namespace headway::sim
