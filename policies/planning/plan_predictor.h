#pragma once

#include <memory>

#include "policies/planning/layout_predictor.h"
#include "scenarios/language/cluster.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"

namespace headway::policies {

/// What plans of one job take on one cluster, in time and memory: the longest path over their programs. Remembers
/// costs, placements and compiled programs by layout, so that a further plan of a layout it has seen costs little.
/// What it remembers changes no result. Not thread-safe.
class PlanPredictor {
  public:
    PlanPredictor(scenarios::Job job, scenarios::Cluster cluster);
    ~PlanPredictor();
    PlanPredictor(PlanPredictor&&) noexcept;
    PlanPredictor& operator=(PlanPredictor&&) noexcept;

    const scenarios::Job& job() const;
    const scenarios::Cluster& cluster() const;

    /// Whether `plan` belongs to job and cluster (scenarios::check_plan), its programs can be made and every GPU has
    /// the memory. What follows takes only plans that do, memory apart; for others it throws std::invalid_argument.
    bool fits(const scenarios::Plan& plan);

    /// One iteration without contention; from 32 micro-batches a replica on within a thousandth of Evaluator.
    scenarios::Duration iteration(const scenarios::Plan& plan, const scenarios::Conditions& conditions = {});
    /// The same, and where the time of every worker goes.
    scenarios::Evaluation evaluate(const scenarios::Plan& plan, const scenarios::Conditions& conditions = {});

    /// Of the fullest rank.
    scenarios::Bytes memory(const scenarios::Plan& plan);
    /// Holds until the next call.
    const scenarios::IterationCosts& costs(const scenarios::Plan& plan);

    /// Everything about the layout of `plan` on its GPUs; shared by whoever holds it.
    std::shared_ptr<LayoutPredictor> of_layout(const scenarios::Plan& plan);

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace headway::policies
