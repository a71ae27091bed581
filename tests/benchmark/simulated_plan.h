#pragma once

#include <cstdint>
#include <memory>

#include "sim/iteration/plan_model.h"

namespace headway::benchmarks {

/// GPT-3 175B on 1,024 GPUs (tensor 8, pipeline 16, data 8, 192 micro-batches a replica) on nodes of 8 GPUs with a NIC
/// each: forward 10 ms, backward 20 ms, messages 1 ms, gradients of a stage 100 ms. Four nodes to a rack share an
/// uplink of half their bandwidth, so that messages of four replicas compete for it; with `overlap` messages and
/// reductions run beside compute, and compete with each other too. Nothing is remembered. All of them in one process
/// share its one network.
class SimulatedPlan {
  public:
    SimulatedPlan(sim::Path path, bool overlap);

    /// One iteration; `different`: every GPU is up to 10 % slower, each by another factor, drawn anew for each
    /// `iteration`.
    scenarios::Duration fresh_iteration(bool different, std::uint64_t iteration);

  private:
    std::unique_ptr<sim::PlanModel> model_;
    sim::ClusterState healthy_;
};

}  // namespace headway::benchmarks
