#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backend/device/device.h"
#include "backend/training/held_block.h"
#include "backend/training/instruction_clock.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"

namespace headway::backend {

/// Sums of a rank's gradients over the replicas, bucket by bucket: all-reduced, or reduce-scattered where the replicas
/// share the optimizer's state. Buckets are reduced from the last to the first whatever the order of the chunks, so
/// that replicas that split the model differently come to a common one in the same order.
class GradientReduction {
  public:
    GradientReduction(Device& device, const scenarios::Model& model, const scenarios::Layout& layout,
                      HeldBlocks& blocks, const TrainingGroups& groups);
    ~GradientReduction();

    /// Sets the gradients to 0, as they are at first: ready for the next step.
    void clear();
    /// After the last backward of the chunk: with sequence parallelism, sums the tensor ranks' shares of whole blocks.
    void sum_shares(int chunk, InstructionClock& clock);
    /// The chunk's gradients are complete: issues what can be reduced now. Returns the bytes that a ring moves for it.
    std::int64_t reduce(int chunk);
    /// Adds up the tied embedding's gradient of first and last stage, before its reduction over the replicas or after.
    std::int64_t reduce_tied(InstructionClock& clock);
    /// Waits for everything.
    void finish(InstructionClock& clock);
    /// The rank's part of a block's gradient, in kernel order unless the state is shared, which is always in block
    /// order. After finish().
    Tensor own_part(std::size_t block) const;

  private:
    struct Reduction {
        bool ready = false;
        Buffer from;  // as it moves
        Buffer part;  // kept from step to step
        std::unique_ptr<Work> work;
    };
    std::int64_t issue(std::size_t bucket);
    void wait(std::size_t bucket, InstructionClock& clock);
    Buffer to_be_moved(const HeldBucket& bucket);

    Device& device_;
    const scenarios::Model& model_;
    const int tensor_degree_;
    HeldBlocks& held_;
    Communicator* const shares_;  // null: each tensor rank has the whole gradient
    Communicator* const tied_;
    std::vector<Reduction> reductions_;  // [buckets]
    std::size_t left_ = 0;               // buckets before it are still to be issued
};

/// Bytes that each member of a ring sends in a reduce-scatter or an all-gather of `message` bytes; an all-reduce sends
/// twice as many (nccl-tests, PERFORMANCE.md).
std::int64_t ring_bytes(std::int64_t message_bytes, int members);

}  // namespace headway::backend
