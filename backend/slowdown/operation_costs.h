#pragma once

#include <vector>

#include "scenarios/costs/iteration_costs.h"
#include "scenarios/language/program.h"

namespace headway::backend {

/// What the cost model says that each operation of one rank's program takes on the GPU that the cluster declares,
/// without communication, which takes its own time on real links.
class OperationCosts {
  public:
    /// Throws std::invalid_argument for a plan that does not fit job or cluster. `rank`: of the plan.
    OperationCosts(const scenarios::Job& job, const scenarios::Cluster& cluster, const scenarios::Plan& plan, int rank);

    /// Zero for messages and collectives.
    const scenarios::Work& of(const scenarios::Instruction& instruction) const;
    /// Of the whole program of an iteration with `micro_batches` of them.
    scenarios::Duration compute(int micro_batches) const;

  private:
    struct Chunk {
        scenarios::Work forward, backward, backward_input, backward_weight;
    };
    std::vector<Chunk> chunks_;
    scenarios::Work optimizer_;
    scenarios::Work nothing_;
};

}  // namespace headway::backend
