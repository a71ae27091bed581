#include "scenarios/costs/iteration_costs.h"

#include <algorithm>

#include "scenarios/costs/layout_costs.h"
#include "scenarios/language/plan_check.h"

namespace headway::scenarios {

std::vector<GpuType> gpu_types_of(const Cluster& cluster) {
    std::vector<GpuType> types;
    for (const NodeGroup& group : cluster.node_groups) {
        const auto same = [&](const GpuType& type) { return type.name == group.node.gpu.name; };
        if (std::none_of(types.begin(), types.end(), same)) types.push_back(group.node.gpu);
    }
    return types;
}

std::vector<int> gpu_types_of_groups(const Cluster& cluster) {
    std::vector<int> types;
    int next = 0;
    for (std::size_t group = 0; group < cluster.node_groups.size(); ++group) {
        std::size_t first = 0;
        while (cluster.node_groups[first].node.gpu.name != cluster.node_groups[group].node.gpu.name) ++first;
        types.push_back(first < group ? types[first] : next++);
    }
    return types;
}

int gpu_type_index(const Cluster& cluster, int gpu) {
    const auto group = static_cast<std::size_t>(cluster.group_of_node(cluster.node_of(gpu)));
    return gpu_types_of_groups(cluster)[group];
}

IterationCosts iteration_costs(const Job& job, const Cluster& cluster, const Plan& plan) {
    check_plan(job, cluster, plan);
    return LayoutCosts(job, cluster, plan.layout, plan.gpu_of_rank).costs(plan);
}

}  // namespace headway::scenarios
