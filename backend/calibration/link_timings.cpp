#include <cstring>
#include <numeric>
#include <string>

#include "backend/calibration/rounds.h"
#include "backend/calibration/timings.h"

namespace headway::backend {

namespace {

using scenarios::Collective;
using scenarios::Duration;

constexpr int kCalls = 9;

/// Lower quartile of several calls; all members make equally many.
Duration time_collective(Device& device, Communicator& group, Collective collective, std::int64_t bytes) {
    const std::int64_t part = bytes / size_of(DataType::kFloat32) / group.size();
    const std::int64_t count = part * group.size();
    const Buffer buffer = device.allocate(DataType::kFloat32, count),
                 other = device.allocate(DataType::kFloat32, count);
    const Tensor whole = buffer.tensor(DataType::kFloat32, 1, count);
    const Tensor received = other.tensor(DataType::kFloat32, 1, count);
    device.operations().fill(whole, 0.0);
    const int next = (group.rank() + 1) % group.size(), before = (group.rank() + group.size() - 1) % group.size();
    const Message ring[] = {{true, next, whole}, {false, before, received}};
    const auto call = [&] {
        switch (collective) {
            case Collective::kAllReduce:
                return group.all_reduce(whole, ReduceOperation::kSum);
            case Collective::kReduceScatter:
                return group.reduce_scatter(whole, received.elements(0, part));
            case Collective::kAllGather:
                return group.all_gather(received.elements(0, part), whole);
            default:
                return group.exchange(ring);
        }
    };
    std::vector<Duration> times;
    for (int i = 0; i <= kCalls; ++i) {
        device.synchronize();
        const Mark begin = device.mark();
        call()->wait();
        const Mark end = device.mark();
        if (i > 0) times.push_back(device.time_of(end) - device.time_of(begin));
        device.forget_marks();
    }
    std::nth_element(times.begin(), times.begin() + kCalls / 4, times.end());
    return times[kCalls / 4];
}

/// The longest of what the processes say.
Duration longest(Control& control, Duration mine) {
    const std::int64_t own = mine.ns();
    std::vector<char> bytes(sizeof own);
    std::memcpy(bytes.data(), &own, sizeof own);
    std::int64_t most = 0;
    for (const std::vector<char>& said : control.all_gather(bytes)) {
        std::int64_t value = 0;
        std::memcpy(&value, said.data(), sizeof value);
        most = std::max(most, value);
    }
    return Duration::nanoseconds(most);
}

}  // namespace

std::vector<CollectiveTiming> time_collectives(Device& device, CommunicatorMaker& communicators, Control& control) {
    std::vector<GroupSpec> groups;
    for (int size = 2; size <= control.size(); size *= 2) {
        GroupSpec group{"calibration of " + std::to_string(size), std::vector<int>(static_cast<std::size_t>(size))};
        std::iota(group.members.begin(), group.members.end(), 0);
        groups.push_back(std::move(group));
    }
    const auto made = communicators.make(groups);
    std::vector<CollectiveTiming> timings;
    for (std::size_t g = 0; g < groups.size(); ++g) {
        for (const Collective collective :
             {Collective::kAllReduce, Collective::kReduceScatter, Collective::kAllGather, Collective::kSendReceive}) {
            for (const std::int64_t bytes : {4 << 10, 64 << 10, 1 << 20, 8 << 20}) {
                const Duration mine = made[g] ? time_collective(device, *made[g], collective, bytes) : Duration();
                timings.push_back({collective, scenarios::Bytes(bytes), static_cast<int>(groups[g].members.size()),
                                   longest(control, mine)});
            }
        }
    }
    return timings;
}

}  // namespace headway::backend
