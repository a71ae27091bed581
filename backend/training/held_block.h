#pragma once

#include <span>
#include <vector>

#include "backend/communicator/communicator.h"
#include "backend/device/device.h"
#include "backend/training/trainer.h"
#include "backend/training/training_groups.h"
#include "backend/transformer/chunk.h"
#include "scenarios/transfer/ownership.h"

namespace headway::backend {

/// A block that this rank holds: where its weights and gradients are, who else holds it, and which part of its state
/// is this rank's.
struct HeldBlock {
    scenarios::Block block;
    int chunk = 0;
    Tensor weights;                    ///< W, kernel order
    Tensor gradients;                  ///< A, kernel order
    scenarios::Interval held;          ///< elements that the rank computes with, in block order
    scenarios::Interval owned;         ///< of them, whose state the rank has
    Communicator* replicas = nullptr;  ///< null with one replica
    bool tied = false;                 ///< first and last stage add up its gradient
    bool counted = false;              ///< in the norm: of every element exactly one rank counts it
    StateSlice* state = nullptr;       ///< null where `owned` is empty

    bool reorders() const { return block.kind == scenarios::BlockKind::kLayerSplit; }
};

/// Memory of a rank's blocks: state on the device. Where replicas share the state, each has an equal part of every
/// block, and collectives move parts padded to equal length.
class HeldBlocks {
  public:
    HeldBlocks(const scenarios::Job& job, const scenarios::Plan& plan, const PlanPlace& place,
               const TrainingGroups& groups, Device& device, std::span<const std::unique_ptr<Chunk>> chunks);

    /// In the order of the model, a tied copy on the last stage last: in it parameters are gathered, and backwards
    /// gradients are reduced. On all ranks of a plan it is the same, so no two wait for each other.
    std::span<HeldBlock> blocks() { return blocks_; }
    std::span<StateSlice> state() { return state_; }
    /// Whether the replicas share the optimizer's state.
    bool sharded() const { return parts_ > 1; }
    int part() const { return part_; }
    /// Elements of one part, padding included; of all of `held` where the state is not shared.
    std::int64_t part_elements(const HeldBlock& block) const { return (block.held.size() + parts_ - 1) / parts_; }
    std::int64_t padded_elements(const HeldBlock& block) const { return part_elements(block) * parts_; }

  private:
    std::vector<HeldBlock> blocks_;
    std::vector<StateSlice> state_;
    std::vector<Buffer> memory_;
    int parts_ = 1;
    int part_ = 0;
};

}  // namespace headway::backend
