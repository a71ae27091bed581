#pragma once

#include <memory>

#include "policies/rules/plan_pool.h"
#include "policies/rules/schedule.h"

namespace headway::policies {

/// Plays one episode again and again in a what-if world and remembers the best that was done in it.
class Rehearsal {
  public:
    Rehearsal(const PolicyResources& resources, std::uint64_t seed);

    /// Plays the episode under `policy`; what was offered joins `pool` (may be null).
    EpisodeSummary play(Policy& policy, PlanPool* pool);

    /// What was done in the episode with the most useful iterations per time; the earliest of equals.
    const Schedule& best() const { return best_; }
    double best_rate() const { return best_rate_; }

    TrainingCluster& world() { return *world_; }

  private:
    EpisodeOptions options_;
    std::unique_ptr<TrainingCluster> world_;
    CandidateGenerator generator_;
    Schedule best_;
    double best_rate_ = -1.0;  ///< useful iterations a second
};

}  // namespace headway::policies
