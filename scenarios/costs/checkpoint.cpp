#include "scenarios/costs/checkpoint.h"

#include <algorithm>
#include <vector>

#include "scenarios/costs/parameters.h"
#include "scenarios/costs/placement.h"

namespace headway::scenarios {

namespace {

constexpr double kSavedOptimizerBytes = 12.0;

double saved_parameter_bytes(const Job& job) {
    return static_cast<double>(bytes_of_element(job.precision));
}

/// Parameters of one rank of a worker.
double parameters_of_rank(const Job& job, const Plan& plan, int replica, int stage) {
    double parameters = 0.0;
    for (int chunk = 0; chunk < plan.layout.virtual_pipeline; ++chunk) {
        const int k = chunk * plan.layout.pipeline + stage;
        parameters += static_cast<double>(rank_parameters(job, plan.layout, k, plan.layers(replica, k)));
    }
    return parameters;
}

struct Transfer {
    double total = 0.0;
    double slowest_nic_s = 0.0;   ///< node with the most bytes over its NICs
    double slowest_pcie_s = 0.0;  ///< GPU with the most bytes over PCIe
};

/// Adds up `bytes_of_rank(parameters, replica, member)` of every rank that takes part.
template <class BytesOfRank>
Transfer transfer(const Job& job, const Cluster& cluster, const Plan& plan, BytesOfRank bytes_of_rank) {
    Transfer result;
    const std::vector<int> node_of_gpu = nodes_of_gpus(cluster), group_of_node = groups_of_nodes(cluster);
    const auto node_at = [&](std::size_t node) -> const Node& {
        return cluster.node_groups[static_cast<std::size_t>(group_of_node[node])].node;
    };
    std::vector<double> by_node(group_of_node.size(), 0.0);
    std::vector<double> most_of_group(cluster.node_groups.size(), 0.0);  // that one of its GPUs has
    for (int replica = 0; replica < plan.layout.data; ++replica)
        for (int stage = 0; stage < plan.layout.pipeline; ++stage) {
            const double parameters = parameters_of_rank(job, plan, replica, stage);
            const int* gpus = &plan.gpu_of_rank[static_cast<std::size_t>(plan.rank(0, 0, replica, stage))];
            for (int member = 0; member < plan.layout.ranks_per_worker(); ++member) {
                const double bytes = bytes_of_rank(parameters, replica, member);
                if (bytes <= 0.0) continue;
                const auto node = static_cast<std::size_t>(node_of_gpu[static_cast<std::size_t>(gpus[member])]);
                double& most = most_of_group[static_cast<std::size_t>(group_of_node[node])];
                by_node[node] += bytes;
                result.total += bytes;
                most = std::max(most, bytes);
            }
        }
    for (std::size_t group = 0; group < most_of_group.size(); ++group)
        if (most_of_group[group] > 0.0)
            result.slowest_pcie_s =
                std::max(result.slowest_pcie_s, most_of_group[group] / cluster.node_groups[group].node.pcie.value);
    for (std::size_t index = 0; index < by_node.size(); ++index) {
        if (by_node[index] <= 0.0) continue;
        const Node& node = node_at(index);
        const double nics = node.network.bandwidth.value * node.network.efficiency * std::max(1, node.nics);
        result.slowest_nic_s = std::max(result.slowest_nic_s, by_node[index] / nics);
    }
    return result;
}

}  // namespace

CheckpointCosts checkpoint_costs(const Job& job, const Cluster& cluster, const Plan& plan) {
    const Layout& layout = plan.layout;
    const double shards = static_cast<double>(layout.data) * layout.context;
    const bool sharded = layout.distributed_optimizer;
    const auto first_copy = [&](int replica, int member) { return replica == 0 && member < layout.tensor; };

    const auto state = [&](double parameters, bool writes_parameters) {
        return parameters * (saved_parameter_bytes(job) * (writes_parameters ? 1.0 : 0.0) +
                             kSavedOptimizerBytes * (sharded ? 1.0 / shards : 1.0));
    };
    const Transfer save = transfer(job, cluster, plan, [&](double parameters, int replica, int member) {
        if (!sharded && !first_copy(replica, member)) return 0.0;
        return state(parameters, first_copy(replica, member));
    });
    const Transfer load =
        transfer(job, cluster, plan, [&](double parameters, int, int) { return state(parameters, true); });

    CheckpointCosts costs;
    costs.state = Bytes(static_cast<std::int64_t>(static_cast<double>(model_parameters(job.model)) *
                                                  (saved_parameter_bytes(job) + kSavedOptimizerBytes)));
    const Facility& facility = cluster.facility;
    costs.save = Duration::seconds(job.checkpoint.asynchronous ? save.slowest_pcie_s
                                                               : std::max({save.total / facility.storage_write.value,
                                                                           save.slowest_nic_s, save.slowest_pcie_s}));
    costs.load = Duration::seconds(
        std::max({load.total / facility.storage_read.value, load.slowest_nic_s, load.slowest_pcie_s}));
    costs.restart = job.checkpoint.restart + costs.load;
    return costs;
}

}  // namespace headway::scenarios
