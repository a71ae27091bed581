#include "scenarios/record/run_header.h"

#include "scenarios/language/read.h"

namespace headway::scenarios {

RunHeader make_run_header(const Scenario& scenario, const Plan& plan, const std::string& policy,
                          Duration healthy_iteration, const IterationCosts& costs) {
    RunHeader header;
    header.scenario = scenario.name;
    header.scenario_yaml = write_scenario(scenario);
    header.policy = policy;
    header.seed = scenario.seed;
    if (scenario.run.time) {
        header.planned_ns = scenario.run.time->ns();
    } else {
        header.planned_iterations = scenario.run.iterations;
    }
    header.telemetry_period_ns = scenario.telemetry_period.ns();
    header.tokens_per_iteration = scenario.job.tokens_per_iteration();
    header.healthy_iteration_ns = healthy_iteration.ns();
    header.model_flops = costs.model_flops.value;
    header.hardware_flops = costs.hardware_flops.value;
    header.peak_flops_per_second = costs.peak.value;
    for (const NodeGroup& group : scenario.cluster.node_groups) {
        header.node_groups.push_back({group.count, group.node.gpus, group.node.gpu.name});
    }
    header.nodes_per_rack = scenario.cluster.network.nodes_per_rack;
    header.plan = plan;
    for (const Disturbance& disturbance : scenario.disturbances) {
        header.disturbances.push_back({disturbance.name, kind_of(disturbance.cause), disturbance.start.ns(),
                                       disturbance.duration ? disturbance.duration->ns() : -1});
    }
    return header;
}

}  // namespace headway::scenarios
