#pragma once

#include <vector>

#include "scenarios/language/cluster.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"

namespace headway::scenarios {

/// Memory of the fullest rank of one stage, exactly as allocated by the described training stack.
struct StageMemory {
  Bytes parameters;      ///< in the working precision
  Bytes gradients;
  Bytes optimizer;       ///< fp32 master weights and Adam moments, sharded with a distributed optimizer
  Bytes activations;     ///< of all micro-batches in flight under the schedule (Korthikanti et al. 2022, sections 4 and 5)
  Bytes reserve;         ///< CUDA context, communicator buffers, workspace
  Bytes total() const { return parameters + gradients + optimizer + activations + reserve; }
};

/// [pipeline]. Throws std::invalid_argument for a plan that does not fit the job.
std::vector<StageMemory> stage_memory(const Job& job, const Plan& plan);

struct MemoryShortage {
  int stage = 0;
  int gpu = 0;           ///< first GPU of the stage that is too small
  Bytes needed;
  Bytes available;
};

/// Empty when the plan fits.
std::vector<MemoryShortage> memory_shortages(const Job& job, const Cluster& cluster, const Plan& plan);

}  // namespace headway::scenarios
