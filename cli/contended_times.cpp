#include "cli/contended_times.h"

#include <algorithm>
#include <vector>

#include "scenarios/costs/iteration_costs.h"
#include "sim/disturbances/timeline.h"
#include "sim/iteration/plan_model.h"
#include "sim/network/topology.h"

namespace headway::cli {

class ContendedTimes::Impl {
  public:
    Impl(const scenarios::Scenario& scenario, const policies::PlanningTask& the_task,
         std::optional<scenarios::Duration> at)
        : task(the_task), topology(the_task.cluster), network(topology) {
        const sim::Timeline timeline(scenario);
        state.environment = at ? timeline.environment(*at) : timeline.healthy();
        state.paces = task.conditions.gpus;
        if (state.paces.empty()) state.paces.resize(static_cast<std::size_t>(task.cluster.gpus()));
    }

    const policies::PlanningTask& task;
    const sim::Topology topology;
    sim::SharedNetwork network;
    sim::ClusterState state;
};

ContendedTimes::ContendedTimes(const scenarios::Scenario& scenario, const policies::PlanningTask& task,
                               std::optional<scenarios::Duration> at)
    : impl_(std::make_unique<Impl>(scenario, task, at)) {}
ContendedTimes::~ContendedTimes() = default;

bool ContendedTimes::matter(const scenarios::Cluster& cluster) {
    return cluster.network.oversubscription > 1.0 ||
           std::any_of(cluster.node_groups.begin(), cluster.node_groups.end(),
                       [](const scenarios::NodeGroup& group) { return group.node.nics < group.node.gpus; });
}

scenarios::Duration ContendedTimes::operator()(const policies::LayoutPoint& point, const scenarios::Plan& plan) {
    const policies::PlanningTask& task = impl_->task;
    const scenarios::Job job = policies::job_of(task, point);
    sim::PlanModel model(task.cluster, impl_->topology, impl_->network, plan,
                         scenarios::iteration_costs(job, task.cluster, plan), job.model.tied_embedding, {});
    return model.steady(impl_->state).duration;
}

}  // namespace headway::cli
