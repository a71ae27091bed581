#pragma once

#include "scenarios/language/cluster.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"
#include "scenarios/language/units.h"

namespace headway::scenarios {

/// What it costs to take a running job from one plan to another, with healthy links.
///
/// Live: state (weights, optimizer) streams to its new owners behind the running iteration under `background_share` of
/// the links; at the boundary only gradients follow, communicators and programs of the new plan are taken into use.
/// Restart: save, relaunch, load under the new plan.
struct SwitchCosts {
    Bytes moved;             ///< state slices that change owner, each counted once
    Bytes at_boundary;       ///< gradients of those slices
    Duration background;     ///< until the state has arrived, beside the running job
    Duration live_pause;     ///< training stands still at the boundary
    Duration restart_pause;  ///< training stands still: save, restart, load
    Bytes extra_memory;      ///< most that any rank holds on top of the larger of its two plans while it has both
    bool fits_live = true;   ///< every GPU has room for that
    bool operator==(const SwitchCosts&) const = default;
};

/// Zero for equal plans. A change of micro-batch shares alone moves nothing. Throws std::invalid_argument for plans
/// that do not fit job and cluster (plan_check.h).
SwitchCosts switch_costs(const Job& job, const Cluster& cluster, const Plan& from, const Plan& to);

}  // namespace headway::scenarios
