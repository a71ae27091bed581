#pragma once

#include <memory>
#include <vector>

#include "policies/training_cluster.h"
#include "scenarios/language/scenario.h"
#include "scenarios/record/run_events.h"

namespace headway::sim {

/// How an iteration is computed. `kAutomatic` is what everybody uses; the others exist for tests and benchmarks, which
/// keep them in agreement. kFlowsReference is kFlowsUnfolded with every message and ring in SimGrid, whether it shares
/// a link or not.
enum class Path { kAutomatic, kLongestPath, kFlows, kFlowsUnfolded, kFlowsReference };

struct SimulationOptions {
    Path path = Path::kAutomatic;
    bool memo = true;         ///< remember quiescent iterations
    bool operations = false;  ///< report operations of every iteration, every replica simulated
};

/// The seam on SimGrid. One instance at a time in a process, since SimGrid has one engine (Path::kLongestPath needs
/// none).
class SimulatedCluster final : public policies::TrainingCluster {
  public:
    using Duration = scenarios::Duration;

    /// `sink` may be null; it must outlive the cluster. Throws scenarios::ConfigError when the plan does not fit in
    /// memory.
    SimulatedCluster(const scenarios::Scenario& scenario, scenarios::RunSink* sink, SimulationOptions options = {});
    ~SimulatedCluster() override;

    const policies::ClusterFacts& facts() const override;
    void start_episode(std::uint64_t seed) override;
    policies::Measurements run(const scenarios::Plan& plan, int iterations) override;
    Duration move_to(const scenarios::Plan& plan) override;
    policies::RecoveryOutcome recover(const policies::Recovery& choice) override;
    Duration now() const override;

    /// Iteration of the scenario's initial plan with everything healthy.
    Duration healthy_iteration() const;
    /// Sums for the footer of a record.
    std::vector<scenarios::GpuSummary> gpu_summaries() const;

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace headway::sim
