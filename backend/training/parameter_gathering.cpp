#include "backend/training/parameter_gathering.h"

#include <stdexcept>

#include "backend/training/gradient_reduction.h"

namespace headway::backend {

ParameterGathering::ParameterGathering(Device& device, const scenarios::Model& model, const scenarios::Layout& layout,
                                       HeldBlocks& blocks)
    : device_(device), model_(model), tensor_degree_(layout.tensor), held_(blocks), gathers_(blocks.blocks().size()) {}

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
    const std::span<HeldBlock> blocks = held_.blocks();
    for (std::size_t i = 0; i < blocks.size(); ++i)
        if (blocks[i].chunk == chunk) gathers_[i].ready = true;
    std::int64_t bytes = 0;
    for (; next_ < gathers_.size() && gathers_[next_].ready; ++next_) bytes += issue(next_);
    return bytes;
}

std::int64_t ParameterGathering::issue(std::size_t block) {
    const HeldBlock& held = held_.blocks()[block];
    Gather& gather = gathers_[block];
    const DataType type = device_.working_type();
    const std::int64_t count = held.held.size(), padded = held_.padded_elements(held);
    Tensor to = held.weights.shaped(1, count);
    if (held.reorders() || padded != count) {
        gather.to = device_.allocate(type, padded);
        to = gather.to.tensor(type, 1, padded);
    }
    const std::int64_t each = held_.part_elements(held), own = held.owned.size();
    const Tensor part = to.elements(held_.part() * each, each);
    if (own > 0) device_.operations().copy(held.state->master, part.elements(0, own));
    if (own < each) device_.operations().fill(part.elements(own, each - own), 0.0);
    gather.work = held.replicas->all_gather(part, to);
    return ring_bytes(to.bytes(), held.replicas->size());
}

void ParameterGathering::finish(int chunk, InstructionClock& clock) {
    const std::span<HeldBlock> blocks = held_.blocks();
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        Gather& gather = gathers_[i];
        if (blocks[i].chunk != chunk || !gather.work) continue;
        clock.wait(*gather.work);
        gather.work.reset();
        if (gather.to.data() == nullptr) continue;
        block_to_kernel_order(device_, model_, tensor_degree_, blocks[i].block.kind,
                              gather.to.tensor(device_.working_type(), 1, blocks[i].held.size()), blocks[i].weights);
        gather.to = {};
    }
}

void ParameterGathering::refresh() {
    for (const HeldBlock& held : held_.blocks())
        block_to_kernel_order(device_, model_, tensor_degree_, held.block.kind, held.state->master, held.weights);
}

}  // namespace headway::backend
