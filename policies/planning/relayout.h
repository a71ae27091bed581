#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "policies/planning/layout_space.h"
#include "policies/planning/proposal.h"

namespace headway::policies {

/// Other degrees, and other orders of all GPUs, where that is faster than everything offered before: the most promising
/// layouts by a bound on their iteration, each on the GPUs that suit it (uneven_plans.h). Remembers what layouts take
/// when all is healthy; where all GPUs are of one type, none takes less when some are slow.
class LayoutOffers {
  public:
    /// `mixed`: the cluster has several types of GPUs.
    explicit LayoutOffers(bool mixed) : mixed_(mixed) {}
    /// Returns what is offered.
    std::vector<scenarios::Plan> offer(Proposal& proposal);
    /// Plans of an earlier search under the same plan.
    void offer_again(Proposal& proposal, const std::vector<scenarios::Plan>& plans);
    /// After a loss: other degrees on the GPUs that are left, where that is faster than every restart offered before.
    void offer_after_loss(Proposal& proposal);

  private:
    static double least_gain(const Proposal& proposal);
    /// Plans of other layouts whose bounds promise an iteration below `limit` (before correction), the most promising
    /// first: at most `wanted`, each on the GPUs that suit it.
    std::vector<scenarios::Plan> promising(Proposal& proposal, scenarios::Duration limit, std::size_t wanted);
    bool may_be_faster(Proposal& proposal, const PlanningTask& task, const LayoutPoint& point, const GpuGroups& groups,
                       scenarios::Duration limit);

    bool mixed_;
    std::vector<std::pair<scenarios::Layout, scenarios::Duration>> healthy_;
};

}  // namespace headway::policies
