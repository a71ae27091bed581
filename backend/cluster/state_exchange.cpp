#include "backend/cluster/state_exchange.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "backend/cluster/packet.h"

namespace headway::backend {

namespace {

struct SlicePlace {
    scenarios::Block block;
    scenarios::Interval elements;
};

/// A slice of one process, found by its block.
struct HeldSlice {
    int process = 0;
    std::size_t index = 0;
    scenarios::Interval elements;
};
using SlicesOfBlock = std::map<std::pair<int, int>, std::vector<HeldSlice>>;  // kind, layer

std::pair<int, int> key_of(const scenarios::Block& block) {
    return {static_cast<int>(block.kind), block.layer};
}

std::vector<std::vector<SlicePlace>> places_of_all(Control& control, std::span<StateSlice> slices) {
    std::vector<SlicePlace> own;
    for (const StateSlice& slice : slices) own.push_back({slice.block, slice.elements});
    std::vector<std::vector<SlicePlace>> all;
    for (const std::vector<char>& bytes : control.all_gather(PacketWriter().put(own).take()))
        all.push_back(PacketReader(bytes).take<std::vector<SlicePlace>>());
    return all;
}

std::array<Tensor, 3> tensors_of(const StateSlice& slice, scenarios::Interval part) {
    const std::int64_t first = part.begin - slice.elements.begin;
    return {slice.master.elements(first, part.size()), slice.first_moment.elements(first, part.size()),
            slice.second_moment.elements(first, part.size())};
}

/// Who of the holders sends `part.begin` and what follows to `process`; shortens `part` to what that one has. Null:
/// nobody has it, up to the shortened end.
const HeldSlice* sender_of(const std::vector<HeldSlice>& holders, int process, scenarios::Interval& part) {
    const HeldSlice* chosen = nullptr;
    int best = 0;
    std::int64_t next = part.end;
    for (const HeldSlice& holder : holders) {
        if (holder.elements.begin > part.begin) next = std::min(next, holder.elements.begin);
        if (holder.elements.begin > part.begin || holder.elements.end <= part.begin) continue;
        const int distance = std::abs(holder.process - process);  // itself first, then neighbours: many senders share
        if (chosen != nullptr && distance >= best) continue;
        chosen = &holder;
        best = distance;
    }
    part.end = chosen != nullptr ? std::min(part.end, chosen->elements.end) : next;
    return chosen;
}

}  // namespace

void exchange_state(Control& control, CommunicatorMaker& communicators, Device& device, std::span<StateSlice> from,
                    std::span<StateSlice> to) {
    const std::vector<std::vector<SlicePlace>> was = places_of_all(control, from), is = places_of_all(control, to);
    std::vector<int> everybody(static_cast<std::size_t>(control.size()));
    std::iota(everybody.begin(), everybody.end(), 0);
    const std::unique_ptr<Communicator> all = std::move(communicators.make({{"state", everybody}}).front());

    SlicesOfBlock held;
    for (std::size_t process = 0; process < was.size(); ++process)
        for (std::size_t i = 0; i < was[process].size(); ++i)
            held[key_of(was[process][i].block)].push_back({static_cast<int>(process), i, was[process][i].elements});

    // Every process walks all transfers in the same order, so that both ends of each agree on the order of messages.
    std::vector<Message> messages;
    for (std::size_t process = 0; process < is.size(); ++process) {
        const int receiver = static_cast<int>(process);
        for (std::size_t i = 0; i < is[process].size(); ++i) {
            const SlicePlace& needed = is[process][i];
            const std::vector<HeldSlice>& holders = held[key_of(needed.block)];
            for (scenarios::Interval part = needed.elements; !part.empty(); part = {part.end, needed.elements.end}) {
                const HeldSlice* sender = sender_of(holders, receiver, part);
                const bool receives = receiver == control.rank();
                if (sender == nullptr) {
                    for (const Tensor& tensor : receives ? tensors_of(to[i], part) : std::array<Tensor, 3>{})
                        if (!tensor.empty()) device.operations().fill(tensor, 0.0);
                    continue;
                }
                const bool has = sender->process == control.rank();
                if (!receives && !has) continue;
                for (std::size_t k = 0; k < 3; ++k) {
                    if (receives && has) {
                        device.operations().copy(tensors_of(from[sender->index], part)[k], tensors_of(to[i], part)[k]);
                    } else if (has) {
                        messages.push_back({true, receiver, tensors_of(from[sender->index], part)[k]});
                    } else {
                        messages.push_back({false, sender->process, tensors_of(to[i], part)[k]});
                    }
                }
            }
        }
    }
    if (!messages.empty()) all->exchange(messages)->wait();
    device.synchronize();
}

}  // namespace headway::backend
