#include "sim/simulated_cluster.h"

#include <utility>

#include "sim/run/trajectory.h"

namespace headway::sim {

class SimulatedCluster::Impl {
  public:
    Impl(const scenarios::Scenario& scenario, scenarios::RunSink* sink, SimulationOptions options)
        : trajectory(scenario, sink, options) {}
    Trajectory trajectory;
};

SimulatedCluster::SimulatedCluster(const scenarios::Scenario& scenario, scenarios::RunSink* sink,
                                   SimulationOptions options)
    : impl_(std::make_unique<Impl>(scenario, sink, options)) {}
SimulatedCluster::~SimulatedCluster() = default;

const policies::ClusterFacts& SimulatedCluster::facts() const {
    return impl_->trajectory.facts();
}
void SimulatedCluster::start_episode(std::uint64_t seed) {
    impl_->trajectory.start(seed);
}
policies::Measurements SimulatedCluster::run(const scenarios::Plan& plan, int iterations) {
    return impl_->trajectory.run(plan, iterations);
}
Duration SimulatedCluster::move_to(const scenarios::Plan& plan) {
    return impl_->trajectory.move_to(plan);
}
policies::RecoveryOutcome SimulatedCluster::recover(const policies::Recovery& choice) {
    return impl_->trajectory.recover(choice);
}
Duration SimulatedCluster::now() const {
    return impl_->trajectory.now();
}
Duration SimulatedCluster::healthy_iteration() const {
    return impl_->trajectory.healthy_iteration();
}
std::vector<scenarios::GpuSummary> SimulatedCluster::gpu_summaries() const {
    return impl_->trajectory.gpu_summaries();
}

}  // namespace headway::sim
