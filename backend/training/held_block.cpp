#include "backend/training/held_block.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace headway::backend {

namespace {

using scenarios::BlockKind;

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
    const scenarios::Layout& layout = plan.layout;
    const scenarios::Ownership ownership(job, plan);
    const bool last_copy = layout.pipeline > 1 && place.stage == layout.pipeline - 1;
    if (layout.distributed_optimizer) {
        parts_ = layout.data;
        part_ = place.replica;
    }
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
            held.replicas = groups.replicas(made.block);
            held.tied = made.block.kind == BlockKind::kEmbedding && groups.tied() != nullptr;
            const bool another_copy = made.block.kind == BlockKind::kEmbedding && last_copy;
            held.counted = !another_copy && (scenarios::is_split(made.block.kind) || place.tensor == 0) &&
                           (sharded() || place.replica == 0);
            blocks_.push_back(held);
        }
    }
    std::sort(blocks_.begin(), blocks_.end(),
              [&](const HeldBlock& a, const HeldBlock& b) { return order_of(a, last_copy) < order_of(b, last_copy); });
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

}  // namespace headway::backend
