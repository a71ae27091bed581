#include "scenarios/costs/checkpoint.h"

#include <algorithm>
#include <map>

#include "scenarios/costs/parameters.h"

namespace headway::scenarios {

namespace {

constexpr double kSavedParameterBytes = 2.0;
constexpr double kSavedOptimizerBytes = 12.0;

/// Bytes that one rank of each stage reads or writes; `owned` of the optimizer state is its own.
double rank_state(const Job& job, const Plan& plan, int stage, double parameters_share, double optimizer_share) {
    double parameters = 0.0;
    for (int chunk = 0; chunk < plan.layout.virtual_pipeline; ++chunk) {
        const int k = chunk * plan.layout.pipeline + stage;
        parameters += static_cast<double>(rank_parameters(job, plan.layout, k, plan.layers(0, k)));
    }
    return parameters * (kSavedParameterBytes * parameters_share + kSavedOptimizerBytes * optimizer_share);
}

struct Transfer {
    double total = 0.0;
    double slowest_nic_s = 0.0;   ///< node with the most bytes over its NICs
    double slowest_pcie_s = 0.0;  ///< GPU with the most bytes over PCIe
};

/// Adds up `bytes(replica, stage)` of every rank that takes part.
template <class BytesOfRank>
Transfer transfer(const Cluster& cluster, const Plan& plan, BytesOfRank bytes_of_rank) {
    Transfer result;
    std::map<int, double> by_node;
    for (int replica = 0; replica < plan.layout.data; ++replica)
        for (int stage = 0; stage < plan.layout.pipeline; ++stage)
            for (int member = 0; member < plan.layout.ranks_per_worker(); ++member) {
                const double bytes = bytes_of_rank(replica, stage, member);
                if (bytes <= 0.0) continue;
                const int node = cluster.node_of(plan.gpu_of_worker(replica, stage, member));
                by_node[node] += bytes;
                result.total += bytes;
                result.slowest_pcie_s = std::max(result.slowest_pcie_s, bytes / cluster.node(node).pcie.value);
            }
    for (const auto& [index, bytes] : by_node) {
        const Node& node = cluster.node(index);
        const double nics = node.network.bandwidth.value * node.network.efficiency * std::max(1, node.nics);
        result.slowest_nic_s = std::max(result.slowest_nic_s, bytes / nics);
    }
    return result;
}

}  // namespace

CheckpointCosts checkpoint_costs(const Job& job, const Cluster& cluster, const Plan& plan) {
    const Layout& layout = plan.layout;
    const double shards = static_cast<double>(layout.data) * layout.context;
    const bool sharded = layout.distributed_optimizer;
    const auto first_copy = [&](int replica, int member) { return replica == 0 && member < layout.tensor; };

    const Transfer save = transfer(cluster, plan, [&](int replica, int stage, int member) {
        if (!sharded && !first_copy(replica, member)) return 0.0;
        return rank_state(job, plan, stage, first_copy(replica, member) ? 1.0 : 0.0, sharded ? 1.0 / shards : 1.0);
    });
    const Transfer load = transfer(cluster, plan, [&](int, int stage, int) {
        return rank_state(job, plan, stage, 1.0, sharded ? 1.0 / shards : 1.0);
    });

    CheckpointCosts costs;
    costs.state = Bytes(static_cast<std::int64_t>(static_cast<double>(model_parameters(job.model)) *
                                                  (kSavedParameterBytes + kSavedOptimizerBytes)));
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
