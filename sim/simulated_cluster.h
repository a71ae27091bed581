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
    /// Clocks are averaged over all iterations of a `run` between which nothing changes (30 s of them at most), where
    /// no sink listens: an episode is within 0.2 % of the exact one and much faster.
    bool heat_together = false;

    /// For training and for looking ahead: no contention, no SimGrid, heat together.
    static SimulationOptions quick() { return {.path = Path::kLongestPath, .heat_together = true}; }
};

/// The seam on SimGrid. Any number may live at a time with Path::kLongestPath; with the others all of one process are
/// `another` of the first, since SimGrid has one engine.
class SimulatedCluster final : public policies::TrainingCluster {
  public:
    using Duration = scenarios::Duration;

    /// `sink` may be null; it must outlive the cluster. Throws scenarios::ConfigError when the plan does not fit in
    /// memory.
    SimulatedCluster(const scenarios::Scenario& scenario, scenarios::RunSink* sink, SimulationOptions options = {});
    ~SimulatedCluster() override;

    /// A further cluster of the same scenario and options, at the beginning of an episode. Cheap: it shares what is
    /// known of plans, and nothing that happens in one is felt in another. For the same thread.
    std::unique_ptr<SimulatedCluster> another(scenarios::RunSink* sink = nullptr) const;

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
    explicit SimulatedCluster(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace headway::sim
