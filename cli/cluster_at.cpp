#include "cli/cluster_at.h"

#include <algorithm>
#include <cstddef>

#include "scenarios/costs/measured_scales.h"
#include "sim/disturbances/timeline.h"
#include "sim/run/facility.h"
#include "sim/thermal/fleet.h"

namespace headway::cli {

namespace {

using scenarios::Duration;

template <class T>
void clear_if_all(std::vector<T>& values, const T& healthy) {
    if (std::all_of(values.begin(), values.end(), [&](const T& value) { return value == healthy; })) values.clear();
}

/// Speed of each GPU of a job with measured times over that in its healthy reference; empty for other jobs.
std::vector<double> measured_speeds(const scenarios::Scenario& scenario) {
    const scenarios::MeasuredScales scales = scenarios::measured_scales(scenario.job, scenario.cluster);
    std::vector<double> speeds;
    for (std::size_t gpu = 0; gpu < scales.actual.size(); ++gpu)
        speeds.push_back((scales.healthy[gpu].forward + 2.0 * scales.healthy[gpu].backward) /
                         (scales.actual[gpu].forward + 2.0 * scales.actual[gpu].backward));
    return speeds;
}

scenarios::Conditions conditions_of(const scenarios::Scenario& scenario, const sim::Environment& environment) {
    const scenarios::Cluster& cluster = scenario.cluster;
    const std::vector<double> measured = measured_speeds(scenario);
    scenarios::Conditions conditions;
    const auto gpus = static_cast<std::size_t>(cluster.gpus());
    const sim::Fleet fleet(cluster);
    const std::vector<double> clocks =
        fleet.healthy_pace(environment.surroundings, std::vector<double>(gpus, 1.0)).pace;
    conditions.node_network.assign(static_cast<std::size_t>(cluster.nodes()), 1.0);
    conditions.node_delay = environment.node_delay;
    for (int node = 0; node < cluster.nodes(); ++node)
        conditions.node_delay[static_cast<std::size_t>(node)] +=
            environment.uplink_delay[static_cast<std::size_t>(cluster.rack_of_node(node))];
    for (int gpu = 0; gpu < cluster.gpus(); ++gpu) {
        const auto i = static_cast<std::size_t>(gpu);
        const int node = cluster.node_of(gpu);
        const auto n = static_cast<std::size_t>(node);
        conditions.gpus.push_back({.compute = clocks[i] * environment.compute_share[i],
                                   .memory = environment.memory_share[i],
                                   .fabric = environment.fabric_factor[n]});
        conditions.node_network[n] = std::min(conditions.node_network[n], environment.port_share(gpu, node));
    }
    for (std::size_t gpu = 0; gpu < measured.size(); ++gpu) {
        conditions.gpus[gpu].compute *= measured[gpu];
        conditions.gpus[gpu].memory *= measured[gpu];
    }
    conditions.rack_uplink = environment.uplink_factor;
    conditions.hop_delay = environment.hop_delay;
    clear_if_all(conditions.gpus, scenarios::GpuPace());
    clear_if_all(conditions.node_network, 1.0);
    clear_if_all(conditions.rack_uplink, 1.0);
    clear_if_all(conditions.node_delay, Duration());
    clear_if_all(conditions.hop_delay, Duration());
    return conditions;
}

std::vector<int> lost_at(const scenarios::Scenario& scenario, const sim::Timeline& timeline, Duration at) {
    const scenarios::Cluster& cluster = scenario.cluster;
    sim::Facility facility(cluster, timeline.arrivals());
    for (const sim::LossEvent& loss : timeline.losses()) {
        if (loss.at > at) break;
        sim::Outage outage;
        outage.node = loss.node >= 0 ? loss.node : cluster.node_of(loss.gpu);
        outage.gpus = {loss.gpu};
        if (loss.node >= 0) {
            outage.gpus.clear();
            for (int slot = 0; slot < cluster.node(loss.node).gpus; ++slot)
                outage.gpus.push_back(cluster.first_gpu(loss.node) + slot);
        }
        outage.noticed = loss.at + scenario.job.checkpoint.detection;
        outage.repaired = outage.noticed + loss.repair;
        facility.take_out(outage.gpus, facility.replace(outage, outage.noticed).at);
    }
    return facility.out_at(at);
}

}  // namespace

ClusterAt cluster_at(const scenarios::Scenario& scenario, Duration at) {
    const sim::Timeline timeline(scenario);
    ClusterAt cluster;
    cluster.conditions = conditions_of(scenario, timeline.environment(at));
    cluster.unavailable_gpus = lost_at(scenario, timeline, at);
    if (scenario.job.measured) cluster.what = "GPUs as they were measured";
    for (const int active : timeline.active(at))
        cluster.what +=
            (cluster.what.empty() ? "" : "; ") + scenario.disturbances[static_cast<std::size_t>(active)].name;
    if (const std::size_t lost = cluster.unavailable_gpus.size(); lost > 0)
        cluster.what +=
            (cluster.what.empty() ? "" : "; ") + std::to_string(lost) + (lost == 1 ? " GPU" : " GPUs") + " lost";
    if (cluster.what.empty()) cluster.what = "healthy";
    return cluster;
}

}  // namespace headway::cli
