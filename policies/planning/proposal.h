#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "policies/action.h"
#include "policies/planning/corrections.h"
#include "policies/planning/plan_predictor.h"
#include "policies/training_cluster.h"
#include "scenarios/transfer/switch_costs.h"

namespace headway::policies {

/// Collects what a job may do next: lets in what is legal and new, and works out what each promises.
class Proposal {
  public:
    /// All outlive it. `unavailable` ascending.
    Proposal(const ClusterFacts& facts, PlanPredictor& predictor, const scenarios::Conditions& conditions,
             const std::vector<int>& unavailable, const Corrections& corrections)
        : facts_(facts),
          predictor_(predictor),
          conditions_(conditions),
          unavailable_(unavailable),
          corrections_(corrections) {}

    /// Candidate 0, whatever its plan.
    void start(Candidate first);
    /// A switch from the first candidate's plan. Offered when it is legal, no candidate has the same plan, and it is
    /// predicted to be at least `gain` (a share) faster than the first candidate. Returns whether it is.
    bool offer(Candidate::Kind kind, const scenarios::Plan& plan, std::string why, double gain);
    /// A restart after the loss, from the last checkpoint.
    bool offer_restart(const scenarios::Plan& plan, std::string why);

    /// Of all candidates so far.
    scenarios::Duration fastest() const;
    /// Of the restarts so far.
    std::optional<scenarios::Duration> fastest_restart() const;
    /// `gain` over the first candidate that is `further` faster than the fastest so far: for changes that cost more.
    double gain_over_fastest(double further) const;

    const ClusterFacts& facts() const { return facts_; }
    PlanPredictor& predictor() { return predictor_; }
    const std::vector<int>& unavailable() const { return unavailable_; }
    const scenarios::Plan& plan() const { return candidates_.front().plan; }
    const Corrections& corrections() const { return corrections_; }

    /// Predicted and corrected.
    scenarios::Duration iteration(const scenarios::Plan& plan);
    bool legal(const scenarios::Plan& plan) const;
    const scenarios::Conditions& conditions() const { return conditions_; }

    /// Candidates by kind, within a kind the fastest first; at most `most` of a kind but kFurther.
    std::vector<Candidate> finish(std::size_t most);

  private:
    bool known(const scenarios::Plan& plan) const;
    /// What is left of the slowest link that state goes over.
    double slowest_link(const scenarios::Plan& from, const scenarios::Plan& to) const;

    const ClusterFacts& facts_;
    PlanPredictor& predictor_;
    const scenarios::Conditions& conditions_;
    const std::vector<int>& unavailable_;
    const Corrections& corrections_;
    std::vector<Candidate> candidates_;
};

}  // namespace headway::policies
