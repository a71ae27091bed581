#pragma once

#include <memory>
#include <optional>

#include "policies/planning/layout_search.h"
#include "scenarios/language/scenario.h"

namespace headway::cli {

/// Iterations with what shared links cost, from the simulator: for searches on clusters where plans contend. The flows
/// of one plan are simulated once.
class ContendedTimes {
  public:
    /// `task` outlives this and holds the conditions; `at` says when they are, absent when everything is healthy.
    ContendedTimes(const scenarios::Scenario& scenario, const policies::PlanningTask& task,
                   std::optional<scenarios::Duration> at);
    ~ContendedTimes();

    /// Whether messages of a plan can be in each other's way here: racks whose uplinks carry less than their NICs, or
    /// GPUs that share NICs.
    static bool matter(const scenarios::Cluster& cluster);
    scenarios::Duration operator()(const policies::LayoutPoint& point, const scenarios::Plan& plan);

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace headway::cli
