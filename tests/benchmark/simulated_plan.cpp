#include "tests/benchmark/simulated_plan.h"

#include <random>

#include "tests/benchmark/layouts.h"
#include "tests/sim/small_jobs.h"

namespace headway::benchmarks {
namespace {

struct Machine {
    scenarios::Cluster cluster = sim::tests::plain_cluster(128, 8, 4, 2.0);
    sim::Topology topology{cluster};
    sim::SharedNetwork network{topology};
    sim::Timeline timeline;

    Machine() : timeline(scenario_of(cluster)) {}
    static scenarios::Scenario scenario_of(const scenarios::Cluster& cluster) {
        scenarios::Scenario scenario;
        scenario.cluster = cluster;
        return scenario;
    }
};

Machine& machine() {
    static Machine the_machine;
    return the_machine;
}

}  // namespace

SimulatedPlan::SimulatedPlan(sim::Path path, bool overlap) {
    scenarios::Plan plan = gpt3_on_1024();
    plan.layout.overlap_pipeline_comm = overlap;
    plan.layout.overlap_grad_reduce = overlap;
    sim::tests::PlainCosts costs;
    costs.reduce_ms = 100.0;
    sim::SimulationOptions options;
    options.path = path;
    options.memo = false;
    Machine& m = machine();
    model_ = std::make_unique<sim::PlanModel>(m.cluster, m.topology, m.network, plan,
                                              sim::tests::plain_costs(plan, m.cluster, costs), false, options);
    healthy_ = {std::vector<scenarios::GpuPace>(1024), m.timeline.healthy(), {}};
}

scenarios::Duration SimulatedPlan::fresh_iteration(bool different, std::uint64_t iteration) {
    if (!different) return model_->steady(healthy_).duration;
    sim::ClusterState state = healthy_;
    std::mt19937_64 random(iteration);
    for (scenarios::GpuPace& pace : state.paces) pace.compute = 1.0 - 0.0001 * static_cast<double>(random() % 1000);
    return model_->steady(state).duration;
}

}  // namespace headway::benchmarks
