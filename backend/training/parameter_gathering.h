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

/// Working weights from master weights: where the replicas share the state, by all-gathers in the working type, bucket
/// by bucket from the first to the last.
class ParameterGathering {
  public:
    ParameterGathering(Device& device, const scenarios::Model& model, const scenarios::Layout& layout,
                       HeldBlocks& blocks);
    ~ParameterGathering();

    /// Before the gathers of all chunks.
    void begin();
    /// Issues what can be gathered now that `chunk` may be. Returns the bytes that a ring moves for it.
    std::int64_t gather(int chunk);
    /// The chunk's weights are up to date after it.
    void finish(int chunk, InstructionClock& clock);
    /// Without communication, where the replicas share nothing.
    void refresh();

  private:
    struct Gather {
        bool ready = false;
        Buffer to;  // as it moves; none where that is the weights themselves
        std::unique_ptr<Work> work;
    };
    std::int64_t issue(std::size_t bucket);

    Device& device_;
    const scenarios::Model& model_;
    const int tensor_degree_;
    HeldBlocks& held_;
    std::vector<Gather> gathers_;  // [buckets]
    std::size_t next_ = 0;         // buckets before it are issued
};

}  // namespace headway::backend
