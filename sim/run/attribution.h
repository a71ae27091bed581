#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "sim/iteration/plan_model.h"

namespace headway::sim {

/// Whose fault it was: splits what an iteration took longer than healthy among the causes in force.
///
/// With one cause it bears all. With several, each weighs what the iteration loses by its direct effects (the time with all minus
/// the time without it, contention at rounded paces), and the weights are scaled to the whole excess; where no cause weighs anything by itself (two
/// that hide each other), they share equally.
class Attribution {
  public:
    /// State of the cluster without the direct effects of one cause (-1: with all).
    using StateWithout = std::function<ClusterState(int cause)>;

    /// `situation` names everything the states depend on, so that weights can be used again. Adds to `costs_ns` [disturbances].
    void split(PlanModel& model, std::int64_t excess_ns, const std::vector<int>& causes, const std::vector<std::uint64_t>& situation,
               const StateWithout& state_without, std::vector<std::int64_t>& costs_ns);
    void clear() { weights_.clear(); }

  private:
    std::map<std::vector<std::uint64_t>, std::vector<double>> weights_;
};

}  // namespace headway::sim
