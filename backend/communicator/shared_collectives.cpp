#include "backend/communicator/shared_collectives.h"

#include <algorithm>
#include <cstring>

#include "backend/communicator/reduction.h"

namespace headway::backend {

namespace {

/// Up to here everybody adds up everything, which saves a meeting.
constexpr std::int64_t kOneRoundBytes = 16 << 10;
constexpr std::int64_t kSlotBytes = static_cast<std::int64_t>(SharedRounds::kSlotBytes);
constexpr std::int64_t kLine = 64;

std::byte* element_of(const Tensor& tensor, std::int64_t element) {
    return static_cast<std::byte*>(tensor.data) + element * size_of(tensor.type);
}

/// `to` = sum (or maximum) over the members of `count` elements at `offset` of their slots.
void combine_slots(const SharedCall& call, DataType type, ReduceOperation operation, std::byte* to, std::int64_t offset,
                   std::int64_t count) {
    std::memcpy(to, call.rounds.slot_of(0) + offset, static_cast<std::size_t>(count * size_of(type)));
    for (int member = 1; member < call.rounds.size(); ++member)
        combine(type, operation, to, call.rounds.slot_of(member) + offset, static_cast<std::size_t>(count));
}

void all_reduce_chunk(const SharedCall& call, const Tensor& chunk, ReduceOperation operation) {
    const std::int64_t element = size_of(chunk.type);
    const int size = call.rounds.size();
    const std::size_t bytes = static_cast<std::size_t>(chunk.bytes());
    std::memcpy(call.rounds.slot(), chunk.data, bytes);
    call.meet();
    if (size == 2 || chunk.bytes() <= kOneRoundBytes)
        return combine_slots(call, chunk.type, operation, static_cast<std::byte*>(chunk.data), 0, chunk.count());
    // Each adds up its part of the chunk, then all fetch all parts.
    const auto begin = [&](int member) { return chunk.count() * member / size; };
    const std::int64_t first = begin(call.rounds.rank()), count = begin(call.rounds.rank() + 1) - first;
    combine_slots(call, chunk.type, operation, call.rounds.slot(), first * element, count);
    call.meet();
    for (int member = 0; member < size; ++member)
        std::memcpy(element_of(chunk, begin(member)), call.rounds.slot_of(member),
                    static_cast<std::size_t>((begin(member + 1) - begin(member)) * element));
}

}  // namespace

void all_reduce(const SharedCall& call, const Tensor& tensor, ReduceOperation operation) {
    const std::int64_t step = kSlotBytes / size_of(tensor.type);
    for (std::int64_t begin = 0; begin < tensor.count(); begin += step)
        all_reduce_chunk(call, tensor.elements(begin, std::min(step, tensor.count() - begin)), operation);
}

void reduce_scatter(const SharedCall& call, const Tensor& from, const Tensor& to) {
    const std::int64_t element = size_of(from.type);
    const int size = call.rounds.size();
    const std::int64_t place = kSlotBytes / size / kLine * kLine;  // of each member's part in a slot
    const std::int64_t step = place / element;
    for (std::int64_t begin = 0; begin < to.count(); begin += step) {
        const std::int64_t count = std::min(step, to.count() - begin);
        for (int member = 0; member < size; ++member)
            std::memcpy(call.rounds.slot() + member * place, element_of(from, member * to.count() + begin),
                        static_cast<std::size_t>(count * element));
        call.meet();
        combine_slots(call, from.type, ReduceOperation::kSum, element_of(to, begin), call.rounds.rank() * place, count);
    }
}

void all_gather(const SharedCall& call, const Tensor& from, const Tensor& to) {
    const std::int64_t element = size_of(from.type), step = kSlotBytes / element;
    const int rank = call.rounds.rank();
    if (std::byte* const own = element_of(to, rank * from.count()); own != from.data)
        std::memcpy(own, from.data, static_cast<std::size_t>(from.bytes()));
    for (std::int64_t begin = 0; begin < from.count(); begin += step) {
        const std::size_t bytes = static_cast<std::size_t>(std::min(step, from.count() - begin) * element);
        std::memcpy(call.rounds.slot(), element_of(to, rank * from.count() + begin), bytes);
        call.meet();
        for (int member = 0; member < call.rounds.size(); ++member)
            if (member != rank)
                std::memcpy(element_of(to, member * from.count() + begin), call.rounds.slot_of(member), bytes);
    }
}

void broadcast(const SharedCall& call, const Tensor& tensor, int root) {
    const std::int64_t element = size_of(tensor.type), step = kSlotBytes / element;
    for (std::int64_t begin = 0; begin < tensor.count(); begin += step) {
        const std::size_t bytes = static_cast<std::size_t>(std::min(step, tensor.count() - begin) * element);
        if (call.rounds.rank() == root) std::memcpy(call.rounds.slot(), element_of(tensor, begin), bytes);
        call.meet();
        if (call.rounds.rank() != root) std::memcpy(element_of(tensor, begin), call.rounds.slot_of(root), bytes);
    }
}

}  // namespace headway::backend
