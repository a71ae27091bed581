#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/communicator/communicator.h"
#include "backend/slowdown/episode_clock.h"
#include "backend/slowdown/physical_disturbances.h"
#include "scenarios/language/plan.h"

namespace headway::backend {

/// Communicators whose links are slowed as the disturbances say: a call is held back by what the slowed links would add
/// to it, then issued, in order, by a thread of the communicator. So messages arrive late, and a collective ends late,
/// whether anybody waits for them or not. A message of n bytes is held back by its delay and by n over what is left of
/// the nominal bandwidth less n over all of it; a collective by what its slowest link adds, delayed once a node and
/// pass, as in the cost model.
///
/// Without disturbances of links it hands out the inner communicators as they are.
class SlowedCommunicators final : public CommunicatorMaker {
  public:
    /// References are kept.
    SlowedCommunicators(CommunicatorMaker& inner, const PhysicalDisturbances& disturbances, const EpisodeClock& clock);

    /// The plan whose communicators are made next: processes are its GPUs.
    void place(const scenarios::Plan& plan);
    std::vector<std::unique_ptr<Communicator>> make(const std::vector<GroupSpec>& groups) override;

  private:
    CommunicatorMaker& inner_;
    const PhysicalDisturbances& disturbances_;
    const EpisodeClock& clock_;
    std::vector<int> stage_of_gpu_;  ///< -1: not in the plan
};

}  // namespace headway::backend
