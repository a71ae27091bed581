#pragma once

#include <memory>
#include <span>
#include <vector>

#include "policies/action.h"
#include "policies/observation.h"
#include "policies/training_cluster.h"

namespace headway::policies {

/// What the job may do next. One generator serves all policies, in simulation and on real processors: what it does not
/// offer cannot be done. Deterministic: the same episode gives the same candidates in the same order. Remembers
/// compiled programs and costs across episodes (speed only) and the plans of the episode (kReturn).
///
/// Every candidate fits job, cluster, memory and ClusterFacts::adapt, and uses no unavailable GPU. Predictions come
/// from the longest-path evaluator under conditions estimated from the observation, scaled so that the current plan's
/// prediction is what was measured.
class CandidateGenerator {
  public:
    explicit CandidateGenerator(const ClusterFacts& facts);
    ~CandidateGenerator();
    CandidateGenerator(CandidateGenerator&&) noexcept;
    CandidateGenerator& operator=(CandidateGenerator&&) noexcept;

    void start_episode();
    /// Never empty. Candidate 0 keeps the plan, or after a loss waits for the replacement. No two candidates have equal
    /// plans. `further` are plans to offer too where they are legal (kFurther).
    std::vector<Candidate> propose(const Observation& observation, std::span<const scenarios::Plan> further = {});

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace headway::policies
