#pragma once

#include <vector>

#include "scenarios/costs/iteration_costs.h"
#include "scenarios/language/program.h"

namespace headway::backend {

/// What the cost model says that each operation of one rank's program takes on the GPU that the cluster declares,
/// without communication, which takes its own time on real links.
class OperationCosts {
  public:
    /// `costs`: iteration_costs of the plan; nothing is kept. `rank`: of the plan.
    OperationCosts(const scenarios::IterationCosts& costs, const scenarios::Cluster& cluster,
                   const scenarios::Plan& plan, int rank);

    /// Zero for messages and collectives.
    const scenarios::Work& of(const scenarios::Instruction& instruction) const;
    /// Kernels of a whole iteration.
    scenarios::Duration compute() const;

  private:
    struct Chunk {
        scenarios::Work forward, backward, backward_input, backward_weight;
    };
    std::vector<Chunk> chunks_;
    scenarios::Work optimizer_;
    scenarios::Work nothing_;
    int micro_batches_ = 1;
};

}  // namespace headway::backend
