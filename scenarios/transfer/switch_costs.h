#pragma once

#include <vector>

#include "scenarios/costs/checkpoint.h"
#include "scenarios/costs/memory.h"
#include "scenarios/language/cluster.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"
#include "scenarios/language/units.h"
#include "scenarios/transfer/difference.h"

namespace headway::scenarios {

/// Share of the links that a live switch takes beside the running job.
constexpr double kBackgroundShare = 0.5;

/// What it costs to take a running job from one plan to another, with healthy links.
///
/// Live: processes and communicators of the new plan are prepared while training goes on. State (weights, optimizer)
/// does not change between two optimizer steps: it streams to its new owners behind one iteration under
/// `kBackgroundShare` of the links; at the boundary only gradients follow, communicators and programs of the new plan
/// are taken into use.
/// Restart: save, relaunch, load under the new plan.
struct SwitchCosts {
    Bytes moved;             ///< state slices that change owner, each counted once
    Bytes at_boundary;       ///< gradients of those slices
    Duration background;     ///< until the state has arrived, beside the running job
    Duration live_pause;     ///< training stands still at the boundary, if an iteration covers `background`
    Duration restart_pause;  ///< training stands still: save, restart, load
    Bytes extra_memory;      ///< most that any rank holds on top of the larger of its two plans while it has both
    Bytes peak_memory;       ///< most that a rank that receives needs while it has both
    bool fits_live = true;   ///< every GPU has room for that
    Duration gradients;      ///< of `live_pause`: the gradients on their way
    Duration preparation;    ///< before: processes and communicators; training goes on under the old plan

    /// How long training stands still when the state streams behind an iteration this long: what is left of it then
    /// goes at full bandwidth. `links`: share of its bandwidth that the slowest link concerned has (0..1].
    Duration live_pause_behind(Duration iteration, double links = 1.0) const {
        const Duration state = background.scaled(1.0 / links);
        const Duration left = state > iteration ? (state - iteration).scaled(kBackgroundShare) : Duration();
        return live_pause + (gradients.scaled(1.0 / links) - gradients) + left;
    }
    bool operator==(const SwitchCosts&) const = default;
};

/// Zero for equal plans. A change of micro-batch shares alone moves nothing. Throws std::invalid_argument for plans
/// that do not fit job and cluster (plan_check.h).
SwitchCosts switch_costs(const Job& job, const Cluster& cluster, const Plan& from, const Plan& to);

/// The same for many candidates of one plan: what depends on the job, the cluster and the plan at hand is computed
/// once. Keeps references to job and cluster. Not thread-safe.
class SwitchEstimate {
  public:
    /// Throws std::invalid_argument for a plan that does not fit.
    SwitchEstimate(const Job& job, const Cluster& cluster, const Plan& from);
    SwitchEstimate(const SwitchEstimate&) = delete;
    SwitchEstimate& operator=(const SwitchEstimate&) = delete;

    /// switch_costs(job, cluster, from, to).
    SwitchCosts to(const Plan& plan);

  private:
    struct Room;
    Room room(const PlacedPlan& to);

    const Job& job_;
    const Cluster& cluster_;
    Plan from_;
    LinkMap map_;
    PlacedPlan placed_;
    MemoryTable memory_;          ///< of the plan at hand
    CheckpointCosts checkpoint_;  ///< of the plan at hand
    LinkLoads loads_;
};

}  // namespace headway::scenarios
