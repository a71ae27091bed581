#include "backend/communicator/collectives.h"

#include <algorithm>
#include <cstring>

#include "backend/communicator/reduction.h"

namespace headway::backend {

namespace {

using Transfers = std::vector<std::shared_ptr<Transfer>>;

constexpr std::int64_t kDirectBytes = 8 << 10;   ///< up to here every member sends to every other
constexpr std::int64_t kSegmentBytes = 1 << 20;  ///< of a ring: few enough wakes, and stays in the last cache
constexpr std::size_t kReceivesAhead = 3;        ///< segments that may arrive while one is added

std::byte* scratch_of(const GroupCall& call, std::size_t bytes) {
    if (call.scratch.size() < bytes) call.scratch.resize(bytes);
    return call.scratch.data();
}

std::byte* bytes_of(const Tensor& tensor) {
    return static_cast<std::byte*>(tensor.data);
}

/// Elements [begin, end) of the tensor.
struct Range {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t count() const { return end - begin; }
};

/// Part `part` of `parts` nearly equal ones; negative numbers count from the last.
Range part_of(std::int64_t count, int parts, int part) {
    part = ((part % parts) + parts) % parts;
    return {count * part / parts, count * (part + 1) / parts};
}

std::vector<Range> segments_of(const Range& range, std::int64_t element_bytes) {
    const std::int64_t step = kSegmentBytes / element_bytes;
    std::vector<Range> segments;
    for (std::int64_t begin = range.begin; begin < range.end; begin += step)
        segments.push_back({begin, std::min(begin + step, range.end)});
    return segments;
}

void wait_all(const GroupCall& call, const Transfers& transfers) {
    for (const std::shared_ptr<Transfer>& transfer : transfers) call.mesh.wait(*transfer, call.description);
}

/// Every member's `bytes` into `all` [size x bytes] in order of rank, its own excepted.
void gather_directly(const GroupCall& call, const void* mine, std::byte* all, std::size_t bytes) {
    Transfers transfers;
    for (int step = 1; step < call.size(); ++step) {
        const int peer = (call.rank + step) % call.size();
        const int process = call.members[static_cast<std::size_t>(peer)];
        transfers.push_back(call.mesh.receive(process, call.slot, all + static_cast<std::size_t>(peer) * bytes, bytes,
                                              call.description));
        transfers.push_back(call.mesh.send(process, call.slot, mine, bytes, call.description));
    }
    wait_all(call, transfers);
}

void all_reduce_directly(const GroupCall& call, const Tensor& tensor, ReduceOperation operation) {
    const std::size_t bytes = static_cast<std::size_t>(tensor.bytes());
    std::byte* const all = scratch_of(call, bytes * static_cast<std::size_t>(call.size()));
    std::memcpy(all + static_cast<std::size_t>(call.rank) * bytes, tensor.data, bytes);
    gather_directly(call, tensor.data, all, bytes);
    for (int peer = 1; peer < call.size(); ++peer)
        combine(tensor.type, operation, all, all + static_cast<std::size_t>(peer) * bytes,
                static_cast<std::size_t>(tensor.count()));
    std::memcpy(tensor.data, all, bytes);
}

/// Segments in the order in which a ring moves them: of part `first`, then `first` - 1, ... , `parts` parts in all.
std::vector<Range> ring_order(const GroupCall& call, const Tensor& tensor, int first, int parts) {
    std::vector<Range> order;
    for (int step = 0; step < parts; ++step) {
        const Range part = part_of(tensor.count(), call.size(), first - step);
        const std::vector<Range> segments = segments_of(part, size_of(tensor.type));
        order.insert(order.end(), segments.begin(), segments.end());
    }
    return order;
}

std::byte* at(const Tensor& tensor, std::int64_t element) {
    return bytes_of(tensor) + element * size_of(tensor.type);
}

/// Afterwards part rank + 1 of the tensor is the sum, the others hold sums of some members.
void reduce_in_ring(const GroupCall& call, const Tensor& tensor, ReduceOperation operation) {
    const std::int64_t element = size_of(tensor.type);
    const std::vector<Range> incoming = ring_order(call, tensor, call.rank - 1, call.size() - 1);
    const std::size_t last =
        incoming.size() - segments_of(part_of(tensor.count(), call.size(), call.rank + 1), element).size();
    std::byte* const scratch = scratch_of(call, kReceivesAhead * kSegmentBytes);
    Transfers sends;
    Transfers receives(incoming.size());
    const auto send = [&](const Range& range) {
        sends.push_back(call.mesh.send(call.next(), call.slot, at(tensor, range.begin),
                                       static_cast<std::size_t>(range.count() * element), call.description));
    };
    const auto place = [&](std::size_t i) { return scratch + (i % kReceivesAhead) * kSegmentBytes; };
    const auto receive = [&](std::size_t i) {
        if (i >= incoming.size()) return;
        receives[i] = call.mesh.receive(call.previous(), call.slot, place(i),
                                        static_cast<std::size_t>(incoming[i].count() * element), call.description);
    };
    for (std::size_t i = 0; i < kReceivesAhead; ++i) receive(i);
    for (const Range& range : segments_of(part_of(tensor.count(), call.size(), call.rank), element)) send(range);
    for (std::size_t i = 0; i < incoming.size(); ++i) {
        call.mesh.wait(*receives[i], call.description);
        receives[i].reset();
        combine(tensor.type, operation, at(tensor, incoming[i].begin), place(i),
                static_cast<std::size_t>(incoming[i].count()));
        receive(i + kReceivesAhead);
        if (i < last) send(incoming[i]);  // its part goes on in the next step
    }
    wait_all(call, sends);
}

/// Part `own` of the tensor goes to everybody; part own - k comes from the member k places before.
void gather_in_ring(const GroupCall& call, const Tensor& tensor, int own) {
    const std::int64_t element = size_of(tensor.type);
    const std::uint64_t slot = call.second_slot;
    const std::vector<Range> incoming = ring_order(call, tensor, own - 1, call.size() - 1);
    const std::size_t last =
        incoming.size() - segments_of(part_of(tensor.count(), call.size(), own + 1), element).size();
    Transfers sends;
    Transfers receives;
    const auto send = [&](const Range& range) {
        sends.push_back(call.mesh.send(call.next(), slot, at(tensor, range.begin),
                                       static_cast<std::size_t>(range.count() * element), call.description));
    };
    for (const Range& range : incoming)
        receives.push_back(call.mesh.receive(call.previous(), slot, at(tensor, range.begin),
                                             static_cast<std::size_t>(range.count() * element), call.description));
    for (const Range& range : segments_of(part_of(tensor.count(), call.size(), own), element)) send(range);
    for (std::size_t i = 0; i < incoming.size(); ++i) {
        call.mesh.wait(*receives[i], call.description);
        if (i < last) send(incoming[i]);
    }
    wait_all(call, sends);
}

}  // namespace

void all_reduce(const GroupCall& call, const Tensor& tensor, ReduceOperation operation) {
    if (tensor.bytes() <= kDirectBytes) return all_reduce_directly(call, tensor, operation);
    reduce_in_ring(call, tensor, operation);
    gather_in_ring(call, tensor, call.rank + 1);
}

void reduce_scatter(const GroupCall& call, const Tensor& from, const Tensor& to) {
    // In step s part rank - s - 1 goes out and part rank - s - 2 comes in, so that the last to come is the own one.
    // What comes is kept until it has gone out again: two places for each segment of a part, used in turn.
    const std::int64_t element = size_of(from.type);
    const int steps = call.size() - 1;
    const std::int64_t part = to.count();
    std::byte* const scratch = scratch_of(call, static_cast<std::size_t>(2 * part * element));
    const std::vector<Range> segments = segments_of({0, part}, element);
    const auto part_at = [&](int number) { return ((number % call.size()) + call.size()) % call.size() * part; };
    const auto place = [&](int step, const Range& segment) {
        return scratch + ((step % 2) * part + segment.begin) * element;
    };
    std::vector<Transfers> receives(static_cast<std::size_t>(steps), Transfers(segments.size()));
    std::vector<Transfers> sends(static_cast<std::size_t>(steps), Transfers(segments.size()));
    const auto bytes = [&](const Range& segment) { return static_cast<std::size_t>(segment.count() * element); };
    const auto receive = [&](int step, std::size_t k) {
        if (step >= steps) return;
        receives[static_cast<std::size_t>(step)][k] = call.mesh.receive(
            call.previous(), call.slot, place(step, segments[k]), bytes(segments[k]), call.description);
    };
    for (std::size_t k = 0; k < segments.size(); ++k) receive(0, k);
    for (std::size_t k = 0; k < segments.size(); ++k)
        sends[0][k] = call.mesh.send(call.next(), call.slot, at(from, part_at(call.rank - 1) + segments[k].begin),
                                     bytes(segments[k]), call.description);
    for (int step = 0; step < steps; ++step) {
        const std::size_t s = static_cast<std::size_t>(step);
        for (std::size_t k = 0; k < segments.size(); ++k) {
            // The other place of this segment was sent in this step (or it is the caller's own); then it is free.
            if (step + 1 < steps) {
                call.mesh.wait(*sends[s][k], call.description);
                receive(step + 1, k);
            }
            call.mesh.wait(*receives[s][k], call.description);
            const std::int64_t own = part_at(call.rank - step - 2) + segments[k].begin;
            const std::size_t count = static_cast<std::size_t>(segments[k].count());
            combine(from.type, ReduceOperation::kSum, place(step, segments[k]), at(from, own), count);
            if (step + 1 < steps) {
                sends[s + 1][k] = call.mesh.send(call.next(), call.slot, place(step, segments[k]), bytes(segments[k]),
                                                 call.description);
            } else {
                std::memcpy(at(to, segments[k].begin), place(step, segments[k]), bytes(segments[k]));
            }
        }
    }
    for (const Transfers& of_step : sends) wait_all(call, of_step);
}

void all_gather(const GroupCall& call, const Tensor& from, const Tensor& to) {
    const std::size_t bytes = static_cast<std::size_t>(from.bytes());
    std::byte* const own = bytes_of(to) + static_cast<std::size_t>(call.rank) * bytes;
    if (own != from.data) std::memcpy(own, from.data, bytes);
    if (from.bytes() <= kDirectBytes) return gather_directly(call, own, bytes_of(to), bytes);
    gather_in_ring(call, to, call.rank);
}

void broadcast(const GroupCall& call, const Tensor& tensor, int root) {
    // A binomial tree: member v (counted from the root) has what it passes on from v without its lowest bit.
    const std::int64_t element = size_of(tensor.type);
    const int place = (call.rank - root + call.size()) % call.size();
    const auto process = [&](int v) { return call.members[static_cast<std::size_t>((v + root) % call.size())]; };
    const std::vector<Range> segments = segments_of({0, tensor.count()}, element);
    const auto bytes = [&](const Range& segment) { return static_cast<std::size_t>(segment.count() * element); };
    int bit = 1;
    Transfers receives;
    while (bit < call.size() && (place & bit) == 0) bit <<= 1;
    if (place != 0)
        for (const Range& segment : segments)
            receives.push_back(call.mesh.receive(process(place & ~bit), call.slot, at(tensor, segment.begin),
                                                 bytes(segment), call.description));
    Transfers sends;
    for (std::size_t k = 0; k < segments.size(); ++k) {
        if (place != 0) call.mesh.wait(*receives[k], call.description);
        for (int below = bit >> 1; below > 0; below >>= 1)
            if (place + below < call.size())
                sends.push_back(call.mesh.send(process(place + below), call.slot, at(tensor, segments[k].begin),
                                               bytes(segments[k]), call.description));
    }
    wait_all(call, sends);
}

}  // namespace headway::backend
