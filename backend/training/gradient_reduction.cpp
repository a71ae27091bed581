#include "backend/training/gradient_reduction.h"

#include <stdexcept>

namespace headway::backend {

std::int64_t ring_bytes(std::int64_t message_bytes, int members) {
    return message_bytes / members * (members - 1);
}

GradientReduction::GradientReduction(Device& device, const scenarios::Model& model, const scenarios::Layout& layout,
                                     HeldBlocks& blocks, const TrainingGroups& groups)
    : device_(device),
      model_(model),
      tensor_degree_(layout.tensor),
      held_(blocks),
      shares_(layout.sequence_parallel ? groups.tensor() : nullptr),
      tied_(groups.tied()),
      reductions_(blocks.buckets().size()) {
    clear();
    if (!held_.sharded()) return;
    for (std::size_t i = 0; i < reductions_.size(); ++i)
        reductions_[i].part = device_.allocate(device_.accumulation_type(), held_.buckets()[i].part_elements);
}

GradientReduction::~GradientReduction() {
    for (Reduction& reduction : reductions_) {
        try {
            if (reduction.work) reduction.work->wait();  // after an error: nobody may write to memory given back
        } catch (const std::exception&) {
            // The error that led here is already on its way.
        }
    }
}

void GradientReduction::clear() {
    for (const HeldBucket& bucket : held_.buckets()) device_.operations().fill(bucket.gradients, 0.0);
    for (Reduction& reduction : reductions_) reduction.ready = false;
    left_ = reductions_.size();
}

void GradientReduction::sum_shares(int chunk, InstructionClock& clock) {
    if (shares_ == nullptr) return;
    std::vector<Tensor> gradients;
    std::int64_t elements = 0;
    for (const HeldBlock& block : held_.blocks()) {
        if (block.chunk != chunk || scenarios::is_split(block.block.kind)) continue;
        gradients.push_back(block.gradients.shaped(1, block.held.size()));
        elements += block.held.size();
    }
    if (gradients.empty()) return;
    const DataType type = device_.accumulation_type();
    const Buffer buffer = device_.allocate(type, elements);
    const Tensor all = buffer.tensor(type, 1, elements);
    std::int64_t at = 0;
    for (const Tensor& gradient : gradients) {
        device_.operations().copy(gradient, all.elements(at, gradient.count()));
        at += gradient.count();
    }
    const std::unique_ptr<Work> work = shares_->all_reduce(all, ReduceOperation::kSum);
    clock.wait(*work);
    at = 0;
    for (const Tensor& gradient : gradients) {
        device_.operations().copy(all.elements(at, gradient.count()), gradient);
        at += gradient.count();
    }
}

std::int64_t GradientReduction::reduce(int chunk) {
    const std::span<const HeldBucket> buckets = held_.buckets();
    for (std::size_t i = 0; i < buckets.size(); ++i)
        if (buckets[i].chunk == chunk) reductions_[i].ready = true;
    std::int64_t bytes = 0;
    for (; left_ > 0 && reductions_[left_ - 1].ready; --left_) bytes += issue(left_ - 1);
    return bytes;
}

std::int64_t GradientReduction::issue(std::size_t number) {
    const HeldBucket& bucket = held_.buckets()[number];
    Reduction& reduction = reductions_[number];
    const DataType type = device_.accumulation_type();
    const std::int64_t moved = ring_bytes(bucket.elements * size_of(type), bucket.replicas->size());
    if (!held_.sharded()) {
        reduction.work = bucket.replicas->all_reduce(bucket.gradients, ReduceOperation::kSum);
        return 2 * moved;
    }
    Tensor from = bucket.gradients;
    if (!held_.moves_as_it_is(bucket)) {
        reduction.from = to_be_moved(bucket);
        from = reduction.from.tensor(type, 1, held_.padded_elements(bucket));
    }
    reduction.work = bucket.replicas->reduce_scatter(from, reduction.part.tensor(type, 1, bucket.part_elements));
    return moved;
}

Buffer GradientReduction::to_be_moved(const HeldBucket& bucket) {
    const DataType type = device_.accumulation_type();
    Buffer buffer = device_.allocate(type, held_.padded_elements(bucket));
    const Tensor moved = buffer.tensor(type, 1, held_.padded_elements(bucket));
    for (const HeldBlock& held : held_.blocks_of(bucket)) {
        const std::int64_t count = held.held.size();
        Buffer room;
        Tensor ordered = held.gradients.shaped(1, count);
        if (held.reorders()) {
            room = device_.allocate(type, count);
            ordered = room.tensor(type, 1, count);
            kernel_to_block_order(device_, model_, tensor_degree_, held.block.kind, held.gradients, ordered);
        }
        held_.to_parts(device_, held, ordered, moved);
    }
    return buffer;
}

void GradientReduction::wait(std::size_t bucket, InstructionClock& clock) {
    Reduction& reduction = reductions_[bucket];
    if (reduction.work) clock.wait(*reduction.work);
    reduction.work.reset();
    reduction.from = {};
}

std::int64_t GradientReduction::reduce_tied(InstructionClock& clock) {
    const std::span<HeldBlock> blocks = held_.blocks();
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (!blocks[i].tied) continue;
        const bool scattered = held_.sharded() && blocks[i].bucket >= left_;
        if (scattered && blocks[i].owned.empty()) return 0;
        wait(blocks[i].bucket, clock);
        const Tensor gradient = scattered ? own_part(i) : blocks[i].gradients;
        const std::unique_ptr<Work> work = tied_->all_reduce(gradient, ReduceOperation::kSum);
        clock.wait(*work);
        return 2 * ring_bytes(gradient.bytes(), tied_->size());
    }
    throw std::logic_error("a program ties an embedding that its rank does not hold");
}

void GradientReduction::finish(InstructionClock& clock) {
    for (std::size_t i = reductions_.size(); i-- > 0;) wait(i, clock);
}

Tensor GradientReduction::own_part(std::size_t block) const {
    const HeldBlock& held = held_.blocks()[block];
    if (!held_.sharded()) return held.gradients.shaped(1, held.held.size());
    const Reduction& reduction = reductions_[held.bucket];
    return reduction.part.tensor(device_.accumulation_type(), 1, held_.buckets()[held.bucket].part_elements)
        .elements(held.offset, held.owned.size());
}

}  // namespace headway::backend
