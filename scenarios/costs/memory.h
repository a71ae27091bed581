#pragma once

#include <vector>

#include "scenarios/language/cluster.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"

namespace headway::scenarios {

/// Memory of the fullest rank of one stage, exactly as allocated by the described training stack.
struct StageMemory {
    Bytes parameters;  ///< in the working precision
    Bytes gradients;
    Bytes optimizer;  ///< fp32 master weights and Adam moments, sharded with a distributed optimizer
    Bytes
        activations;  ///< of all micro-batches in flight under the schedule (Korthikanti et al. 2022, sections 4 and 5)
    Bytes reserve;    ///< CUDA context, communicator buffers, workspace, the layer that is being recomputed
    Bytes total() const { return parameters + gradients + optimizer + activations + reserve; }
};

/// Activations that one rank keeps of one layer and micro-batch until its backward. Korthikanti et al. 2022, table 2,
/// for any shape: with t tensor ranks and 16-bit values s b h (10 + 24/t + 5 a s / (h t)), the first part also over t
/// with sequence parallelism, the last gone with selective recomputation or fused attention, 2 s b h with full
/// recomputation.
Bytes layer_activations(const Job& job, const Layout& layout);

/// [pipeline]. Throws std::invalid_argument for a plan that does not fit the job.
std::vector<StageMemory> stage_memory(const Job& job, const Plan& plan);

struct MemoryShortage {
    int stage = 0;
    int gpu = 0;  ///< first GPU of the stage that is too small
    Bytes needed;
    Bytes available;
};

/// Empty when the plan fits.
std::vector<MemoryShortage> memory_shortages(const Job& job, const Cluster& cluster, const Plan& plan);

}  // namespace headway::scenarios
