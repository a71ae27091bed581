#include "backend/training/held_block.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "backend/training/block_buckets.h"

namespace headway::backend {

namespace {

using scenarios::BlockKind;

/// Of a bucket: large enough for full bandwidth, and what is copied to be moved stays small beside a large model.
constexpr std::int64_t kMostElements = std::int64_t{16} << 20;

/// Place in the order of all blocks of the model.
int order_of(const HeldBlock& held, bool last_copy) {
    constexpr int kEnd = std::numeric_limits<int>::max();
    switch (held.block.kind) {
        case BlockKind::kEmbedding:
            return last_copy ? kEnd : 0;
        case BlockKind::kPositions:
            return 1;
        case BlockKind::kLayerSplit:
            return 2 + 2 * held.block.layer;
        case BlockKind::kLayerReplicated:
            return 3 + 2 * held.block.layer;
        case BlockKind::kFinalNorm:
            return kEnd - 1;
        case BlockKind::kHead:
            return kEnd;
    }
    throw std::invalid_argument("not a block");
}

}  // namespace

HeldBlocks::HeldBlocks(const scenarios::Job& job, const scenarios::Plan& plan, const PlanPlace& place,
                       const TrainingGroups& groups, Device& device, std::span<const std::unique_ptr<Chunk>> chunks) {
    if (plan.layout.distributed_optimizer) {
        parts_ = plan.layout.data;
        part_ = place.replica;
    }
    add_blocks(job, plan, place, groups, chunks);
    add_buckets(plan, groups);
    add_state(device);
}

void HeldBlocks::add_blocks(const scenarios::Job& job, const scenarios::Plan& plan, const PlanPlace& place,
                            const TrainingGroups& groups, std::span<const std::unique_ptr<Chunk>> chunks) {
    const scenarios::Layout& layout = plan.layout;
    const scenarios::Ownership ownership(job, plan);
    const bool last_copy = layout.pipeline > 1 && place.stage == layout.pipeline - 1;
    for (std::size_t c = 0; c < chunks.size(); ++c) {
        for (const BlockWeights& made : chunks[c]->blocks()) {
            HeldBlock held;
            held.block = made.block;
            held.chunk = static_cast<int>(c);
            held.weights = made.weights;
            held.gradients = made.gradients;
            held.held = ownership.owned(place.rank, made.block, scenarios::StateKind::kWeights);
            held.owned = ownership.owned(place.rank, made.block, scenarios::StateKind::kOptimizer);
            if (held.held.size() != made.weights.count() || held.held.size() != made.gradients.count())
                throw std::logic_error("a chunk holds another part of a block than its rank");
            held.tied = made.block.kind == BlockKind::kEmbedding && groups.tied() != nullptr;
            const bool another_copy = made.block.kind == BlockKind::kEmbedding && last_copy;
            held.counted = !another_copy && (scenarios::is_split(made.block.kind) || place.tensor == 0) &&
                           (sharded() || place.replica == 0);
            blocks_.push_back(held);
        }
    }
    std::sort(blocks_.begin(), blocks_.end(),
              [&](const HeldBlock& a, const HeldBlock& b) { return order_of(a, last_copy) < order_of(b, last_copy); });
}

void HeldBlocks::add_buckets(const scenarios::Plan& plan, const TrainingGroups& groups) {
    std::vector<BucketCandidate> candidates;
    for (const HeldBlock& held : blocks_)
        candidates.push_back({virtual_stages_of(plan, held.block), held.tied, held.held.size()});
    std::vector<std::size_t> starts = bucket_starts(candidates, kMostElements);
    starts.push_back(blocks_.size());
    for (std::size_t b = 0; b + 1 < starts.size(); ++b) {
        HeldBucket bucket;
        bucket.first = starts[b];
        bucket.count = starts[b + 1] - starts[b];
        const HeldBlock& first = blocks_[bucket.first];
        bucket.chunk = first.chunk;
        bucket.replicas = groups.replicas(first.block);
        for (HeldBlock& held : blocks_of(bucket)) {
            held.bucket = b;
            held.offset = bucket.part_elements;
            bucket.part_elements += part_elements(held);
            bucket.elements += held.held.size();
        }
        const Tensor last = blocks_[starts[b + 1] - 1].gradients;
        const auto* const begin = static_cast<const std::byte*>(first.gradients.data);
        const auto* const end = static_cast<const std::byte*>(last.data) + last.bytes();
        const std::int64_t count = (end - begin) / size_of(last.type);
        bucket.gradients = {first.gradients.data, last.type, 1, count, count};
        buckets_.push_back(bucket);
    }
}

void HeldBlocks::add_state(Device& device) {
    state_.reserve(blocks_.size());  // blocks point to them
    for (HeldBlock& held : blocks_) {
        if (held.owned.empty()) continue;
        StateSlice slice;
        slice.block = held.block;
        slice.elements = held.owned;
        for (Tensor* const tensor : {&slice.master, &slice.first_moment, &slice.second_moment}) {
            memory_.push_back(device.allocate(device.accumulation_type(), held.owned.size()));
            *tensor = memory_.back().tensor(device.accumulation_type(), 1, held.owned.size());
        }
        state_.push_back(slice);
        held.state = &state_.back();
    }
}

bool HeldBlocks::moves_as_it_is(const HeldBucket& bucket) const {
    return bucket.count == 1 && !blocks_[bucket.first].reorders() && padded_elements(bucket) == bucket.elements;
}

/// A block is `full` whole parts, a beginning of another one, and nothing of those that follow.
void HeldBlocks::to_parts(Device& device, const HeldBlock& block, const Tensor& ordered, const Tensor& moved) const {
    const std::int64_t each = part_elements(block), stride = buckets_[block.bucket].part_elements;
    const std::int64_t full = block.held.size() / each, rest = block.held.size() % each;
    const Tensor parts = Tensor{moved.data, moved.type, parts_, stride, stride}.column_range(block.offset, each);
    device.operations().copy(ordered.elements(0, full * each).shaped(full, each), parts.row_range(0, full));
    if (full == parts_) return;
    if (rest > 0)
        device.operations().copy(ordered.elements(full * each, rest), parts.row_range(full, 1).column_range(0, rest));
    device.operations().fill(parts.row_range(full, 1).column_range(rest, each - rest), 0.0);
    if (full + 1 < parts_) device.operations().fill(parts.row_range(full + 1, parts_ - full - 1), 0.0);
}

void HeldBlocks::from_parts(Device& device, const HeldBlock& block, const Tensor& moved, const Tensor& ordered) const {
    const std::int64_t each = part_elements(block), stride = buckets_[block.bucket].part_elements;
    const std::int64_t full = block.held.size() / each, rest = block.held.size() % each;
    const Tensor parts = Tensor{moved.data, moved.type, parts_, stride, stride}.column_range(block.offset, each);
    device.operations().copy(parts.row_range(0, full), ordered.elements(0, full * each).shaped(full, each));
    if (rest > 0)
        device.operations().copy(parts.row_range(full, 1).column_range(0, rest), ordered.elements(full * each, rest));
}

}  // namespace headway::backend
