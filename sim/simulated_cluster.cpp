#include "sim/simulated_cluster.h"

#include <utility>

#include "sim/run/trajectory.h"

namespace headway::sim {

class SimulatedCluster::Impl {
  public:
    Impl(std::shared_ptr<Site> site, scenarios::RunSink* sink) : trajectory(std::move(site), sink) {}
    Trajectory trajectory;
};

SimulatedCluster::SimulatedCluster(const scenarios::Scenario& scenario, scenarios::RunSink* sink,
                                   SimulationOptions options)
    : impl_(std::make_unique<Impl>(std::make_shared<Site>(scenario, options), sink)) {}
SimulatedCluster::SimulatedCluster(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SimulatedCluster::~SimulatedCluster() = default;

std::unique_ptr<SimulatedCluster> SimulatedCluster::another(scenarios::RunSink* sink) const {
    return std::unique_ptr<SimulatedCluster>(
        new SimulatedCluster(std::make_unique<Impl>(impl_->trajectory.site(), sink)));
}

const policies::ClusterFacts& SimulatedCluster::facts() const {
    return impl_->trajectory.site()->facts;
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
    return impl_->trajectory.site()->facts.healthy_iteration;
}
std::vector<scenarios::GpuSummary> SimulatedCluster::gpu_summaries() const {
    return impl_->trajectory.gpu_summaries();
}

}  // namespace headway::sim
