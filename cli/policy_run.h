#pragma once

#include <functional>
#include <memory>

#include "cli/simulated_run.h"
#include "policies/episode.h"
#include "policies/shadow.h"
#include "policies/training_cluster.h"
#include "scenarios/language/plan.h"
#include "scenarios/language/scenario.h"
#include "scenarios/record/run_events.h"

namespace headway::policies {
class OnlineLearner;
}

namespace headway::cli {

/// The scenario's policy with its guards, and who looks over its shoulder, on any cluster: simulated and real runs go
/// through this same code.
class PolicyRun {
  public:
    PolicyRun(const scenarios::Scenario& scenario, const Oversight& oversight, std::int64_t max_iterations);
    ~PolicyRun();

    /// Tells `sink` of the run from its header, which says that it begins with `plan`, up to the last decision.
    policies::EpisodeSummary run(policies::TrainingCluster& cluster, const scenarios::Plan& plan,
                                 scenarios::RunSink& sink);
    /// What a policy that goes on learning became is written where `oversight` says.
    void keep_what_was_learned() const;

  private:
    const scenarios::Scenario& scenario_;
    const Oversight& oversight_;
    policies::EpisodeOptions episode_;
    std::unique_ptr<policies::Policy> policy_;
    policies::OnlineLearner* learner_ = nullptr;          ///< inside policy_
    const policies::ShadowedPolicy* shadowed_ = nullptr;  ///< policy_
};

/// The end of the record of a run.
scenarios::RunFooter run_footer(const policies::EpisodeSummary& done, std::vector<scenarios::GpuSummary> gpus);

}  // namespace headway::cli
