#pragma once

#include <vector>

#include "policies/planning/layout_space.h"
#include "policies/planning/plan_memory.h"
#include "policies/planning/point_bounds.h"

namespace headway::policies {

/// Plans of one layout for GPUs that are not alike: other types, or slowed ones. The fastest tensor groups are taken
/// (a slow way into the network counts like a slow GPU), in the order of nodes, slow ones first or fast ones first,
/// stage by stage or replica by replica (there also with its last stage beside its first); each of these with even
/// stages and shares, with stages by the speed of their slowest worker, and (where the task lets replicas differ) with
/// stages of each replica by its own; shares by what a replica takes then. What a pipeline takes is estimated as
/// (micro-batches - 1) x slowest stage + all stages once, and up to `plans` of the best by that are returned, none
/// twice: first one of each order of GPUs, since links decide between those; none that is a quarter behind the best.
/// Stages hold no more layers than fit in memory.
class UnevenPlans {
  public:
    /// Both must outlive this.
    UnevenPlans(const PlanningTask& task, PointBounds& speeds) : task_(task), speeds_(speeds) {}
    std::vector<scenarios::Plan> of(const LayoutPoint& point, const GpuGroups& groups, PlanMemory& memory,
                                    std::size_t plans);

  private:
    const PlanningTask& task_;
    PointBounds& speeds_;
};

}  // namespace headway::policies
