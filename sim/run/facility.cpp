#include "sim/run/facility.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace headway::sim {
namespace {

const Duration kStays = Duration::nanoseconds(std::numeric_limits<std::int64_t>::max());

}  // namespace

Facility::Facility(const scenarios::Cluster& cluster, const std::vector<ArrivalEvent>& arrivals)
    : facility_(cluster.facility), arrivals_(arrivals), out_until_(static_cast<std::size_t>(cluster.gpus())) {
    start();
}

void Facility::start() {
    std::fill(out_until_.begin(), out_until_.end(), Duration());
    last_back_ = Duration();
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

void Facility::take_out(const std::vector<int>& gpus, Duration until) {
    for (const int gpu : gpus) {
        Duration& back = out_until_[static_cast<std::size_t>(gpu)];
        back = std::max(back, until);
    }
    last_back_ = std::max(last_back_, until);
}

std::vector<int> Facility::out_at(Duration now) const {
    std::vector<int> out;
    if (last_back_ <= now) return out;
    for (std::size_t gpu = 0; gpu < out_until_.size(); ++gpu)
        if (out_until_[gpu] > now) out.push_back(static_cast<int>(gpu));
    return out;
}

}  // namespace headway::sim
