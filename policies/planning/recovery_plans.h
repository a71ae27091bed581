#pragma once

#include <vector>

#include "policies/observation.h"
#include "policies/planning/proposal.h"
#include "policies/training_cluster.h"

namespace headway::policies {

/// Parts that can replace lost ones, as far as an operator can know: the facility's spare nodes, and when broken parts
/// will be repaired.
class SpareParts {
  public:
    explicit SpareParts(const scenarios::Cluster& cluster) : cluster_(&cluster) { start_episode(); }
    void start_episode();
    /// From `now`, after a loss: until the place of the lost GPUs is filled again. Takes note of the loss.
    scenarios::Duration until_replaced(const Loss& loss, scenarios::Duration now);

  private:
    const scenarios::Cluster* cluster_;
    std::vector<scenarios::Duration> spares_;  ///< when each is there
};

/// Plans that need none of the unavailable GPUs: the replicas that lost one are left out; what is left of them and idle
/// GPUs is put together to whole replicas.
void offer_recoveries(Proposal& proposal, const ClusterFacts& facts, const Observation& observation);

}  // namespace headway::policies
