#pragma once

#include <vector>

#include "backend/device/device.h"
#include "backend/transformer/chunk.h"
#include "backend/transformer/owned_tensor.h"

namespace headway::backend {

/// Memory of the blocks that a chunk holds, with gradients at 0.
class ChunkWeights {
  public:
    ChunkWeights(Device& device, const ChunkShape& shape);

    /// In model order.
    const std::vector<BlockWeights>& blocks() const { return blocks_; }
    const Tensor& gradients() const { return gradients_.tensor; }
    /// Null where the chunk does not hold it.
    const BlockWeights* find(scenarios::BlockKind kind, int layer = -1) const;
    /// Of this rank's part of a block.
    std::int64_t elements(scenarios::BlockKind kind) const;

  private:
    void add(Device& device, scenarios::BlockKind kind, int layer = -1);
    void allocate_gradients(Device& device);

    scenarios::Model model_;
    std::int64_t tensor_degree_;
    std::int64_t padded_vocab_;
    std::vector<OwnedTensor> memory_;  // of the weights
    OwnedTensor gradients_;
    std::vector<BlockWeights> blocks_;
};

}  // namespace headway::backend
