#pragma once

#include <sys/types.h>

#include <memory>
#include <vector>

#include "backend/cluster/member.h"
#include "backend/cluster/real_cluster.h"
#include "policies/training_cluster.h"
#include "scenarios/language/scenario.h"

namespace headway::tests {

/// The seam on real processors with all it needs: this process is rank 0 of a deployment, and the others are children
/// of it, which go when the object does. A scenario's model is replaced by a tiny one of as many layers, in fp32.
class DeployedCluster final : public policies::TrainingCluster {
  public:
    explicit DeployedCluster(const scenarios::Scenario& scenario, scenarios::RunSink* sink = nullptr);
    ~DeployedCluster() override;

    const policies::ClusterFacts& facts() const override { return cluster_->facts(); }
    void start_episode(std::uint64_t seed) override { cluster_->start_episode(seed); }
    policies::Measurements run(const scenarios::Plan& plan, int iterations) override {
        return cluster_->run(plan, iterations);
    }
    policies::Duration move_to(const scenarios::Plan& plan) override { return cluster_->move_to(plan); }
    policies::RecoveryOutcome recover(const policies::Recovery& choice) override { return cluster_->recover(choice); }
    policies::Duration now() const override { return cluster_->now(); }

    /// The scenario as it is trained.
    static scenarios::Scenario tiny(scenarios::Scenario scenario);

  private:
    std::vector<pid_t> children_;
    std::unique_ptr<backend::Control> control_;
    std::unique_ptr<backend::Member> member_;
    std::unique_ptr<backend::RealCluster> cluster_;
};

}  // namespace headway::tests
