#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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
    Tensor weights;               ///< W, kernel order
    Tensor gradients;             ///< A, kernel order
    scenarios::Interval held;     ///< elements that the rank computes with, in block order
    scenarios::Interval owned;    ///< of them, whose state the rank has
    bool tied = false;            ///< first and last stage add up its gradient
    bool counted = false;         ///< in the norm: of every element exactly one rank counts it
    StateSlice* state = nullptr;  ///< null where `owned` is empty
    std::size_t bucket = 0;
    std::int64_t offset = 0;  ///< in a part of its bucket

    bool reorders() const { return block.kind == scenarios::BlockKind::kLayerSplit; }
};

/// Blocks that one collective takes together (backend/training/block_buckets.h).
struct HeldBucket {
    std::size_t first = 0;  ///< of the rank's blocks
    std::size_t count = 0;
    int chunk = 0;
    Communicator* replicas = nullptr;  ///< null with one replica
    Tensor gradients;                  ///< of all its blocks, with the gaps between them
    std::int64_t elements = 0;         ///< without gaps and padding
    std::int64_t part_elements = 0;    ///< of one replica's part, padding included
};

/// A rank's blocks in their order and buckets, and the memory of their state. Where replicas share the state, each has
/// an equal part of every block. A bucket then moves as its parts one after the other, and a part as that of each of
/// its blocks, padded to the same length in all parts.
class HeldBlocks {
  public:
    HeldBlocks(const scenarios::Job& job, const scenarios::Plan& plan, const PlanPlace& place,
               const TrainingGroups& groups, Device& device, std::span<const std::unique_ptr<Chunk>> chunks);

    /// In the order of the model, a tied copy on the last stage last: in it parameters are gathered, and backwards
    /// gradients are reduced. On all ranks of a plan it is the same, so no two wait for each other.
    std::span<HeldBlock> blocks() { return blocks_; }
    std::span<const HeldBucket> buckets() const { return buckets_; }
    std::span<HeldBlock> blocks_of(const HeldBucket& bucket) {
        return std::span(blocks_).subspan(bucket.first, bucket.count);
    }
    std::span<StateSlice> state() { return state_; }
    /// Whether the replicas share the optimizer's state.
    bool sharded() const { return parts_ > 1; }
    int part() const { return part_; }
    /// Elements of a block's part, padding included; of all of `held` where the state is not shared.
    std::int64_t part_elements(const HeldBlock& block) const { return (block.held.size() + parts_ - 1) / parts_; }
    std::int64_t padded_elements(const HeldBucket& bucket) const { return bucket.part_elements * parts_; }
    /// Whether the bucket's block in block order is the bucket as it moves.
    bool moves_as_it_is(const HeldBucket& bucket) const;
    /// Between a block in block order and its parts in `moved` [1 x padded elements of its bucket]; padding becomes 0.
    void to_parts(Device& device, const HeldBlock& block, const Tensor& ordered, const Tensor& moved) const;
    void from_parts(Device& device, const HeldBlock& block, const Tensor& moved, const Tensor& ordered) const;

  private:
    void add_blocks(const scenarios::Job& job, const scenarios::Plan& plan, const PlanPlace& place,
                    const TrainingGroups& groups, std::span<const std::unique_ptr<Chunk>> chunks);
    void add_buckets(const scenarios::Plan& plan, const TrainingGroups& groups);
    void add_state(Device& device);

    std::vector<HeldBlock> blocks_;
    std::vector<HeldBucket> buckets_;
    std::vector<StateSlice> state_;
    std::vector<Buffer> memory_;
    int parts_ = 1;
    int part_ = 0;
};

}  // namespace headway::backend
