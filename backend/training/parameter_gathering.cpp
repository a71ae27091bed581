#include "backend/training/parameter_gathering.h"

#include <stdexcept>

#include "backend/training/gradient_reduction.h"

namespace headway::backend {

ParameterGathering::ParameterGathering(Device& device, const scenarios::Model& model, const scenarios::Layout& layout,
                                       HeldBlocks& blocks)
    : device_(device), model_(model), tensor_degree_(layout.tensor), held_(blocks), gathers_(blocks.buckets().size()) {}

ParameterGathering::~ParameterGathering() {
    for (Gather& gather : gathers_) {
        try {
            if (gather.work) gather.work->wait();  // after an error: nobody may write to memory given back
        } catch (const std::exception&) {
            // The error that led here is already on its way.
        }
    }
}

void ParameterGathering::begin() {
    for (Gather& gather : gathers_) gather.ready = false;
    next_ = 0;
}

std::int64_t ParameterGathering::gather(int chunk) {
    const std::span<const HeldBucket> buckets = held_.buckets();
    for (std::size_t i = 0; i < buckets.size(); ++i)
        if (buckets[i].chunk == chunk) gathers_[i].ready = true;
    std::int64_t bytes = 0;
    for (; next_ < gathers_.size() && gathers_[next_].ready; ++next_) bytes += issue(next_);
    return bytes;
}

std::int64_t ParameterGathering::issue(std::size_t number) {
    const HeldBucket& bucket = held_.buckets()[number];
    Gather& gather = gathers_[number];
    const DataType type = device_.working_type();
    const std::int64_t padded = held_.padded_elements(bucket);
    Tensor to = held_.blocks()[bucket.first].weights.shaped(1, padded);
    if (!held_.moves_as_it_is(bucket)) {
        gather.to = device_.allocate(type, padded);
        to = gather.to.tensor(type, 1, padded);
    }
    const Tensor part = to.elements(held_.part() * bucket.part_elements, bucket.part_elements);
    for (const HeldBlock& held : held_.blocks_of(bucket)) {
        const std::int64_t each = held_.part_elements(held), own = held.owned.size();
        if (own > 0) device_.operations().copy(held.state->master, part.elements(held.offset, own));
        if (own < each) device_.operations().fill(part.elements(held.offset + own, each - own), 0.0);
    }
    gather.work = bucket.replicas->all_gather(part, to);
    return ring_bytes(bucket.elements * size_of(type), bucket.replicas->size());
}

void ParameterGathering::finish(int chunk, InstructionClock& clock) {
    const DataType type = device_.working_type();
    for (std::size_t i = 0; i < gathers_.size(); ++i) {
        const HeldBucket& bucket = held_.buckets()[i];
        Gather& gather = gathers_[i];
        if (bucket.chunk != chunk || !gather.work) continue;
        clock.wait(*gather.work);
        gather.work.reset();
        if (gather.to.data() == nullptr) continue;
        const Tensor moved = gather.to.tensor(type, 1, held_.padded_elements(bucket));
        for (const HeldBlock& held : held_.blocks_of(bucket)) {
            const std::int64_t count = held.held.size();
            if (!held.reorders()) {
                held_.from_parts(device_, held, moved, held.weights.shaped(1, count));
                continue;
            }
            const Buffer room = device_.allocate(type, count);
            const Tensor ordered = room.tensor(type, 1, count);
            held_.from_parts(device_, held, moved, ordered);
            block_to_kernel_order(device_, model_, tensor_degree_, held.block.kind, ordered, held.weights);
        }
        gather.to = {};
    }
}

void ParameterGathering::refresh() {
    for (const HeldBlock& held : held_.blocks())
        block_to_kernel_order(device_, model_, tensor_degree_, held.block.kind, held.state->master, held.weights);
}

}  // namespace headway::backend
