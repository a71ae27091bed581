#pragma once

#include <span>
#include <vector>

#include "scenarios/costs/collective.h"
#include "scenarios/language/cluster.h"
#include "scenarios/language/plan.h"

/// Where the groups of a plan lie: what a collective sees of the network. Of unequal groups the widest counts. Layers
/// and micro-batches play no part.
namespace headway::scenarios {

class Placement {
  public:
    /// `gpu_of_rank` [world size] as in Plan. O(ranks).
    Placement(const Layout& layout, std::span<const int> gpu_of_rank, const Cluster& cluster);
    Placement(const Plan& plan, const Cluster& cluster) : Placement(plan.layout, plan.gpu_of_rank, cluster) {}

    /// The tensor group of any worker.
    GroupShape tensor() const { return tensor_; }
    /// The ranks of a worker that hold the same slice of the layers and different parts of the sequence.
    GroupShape context() const { return context_; }
    /// The ranks that hold the same parameters of a stage: replicas times context ranks.
    GroupShape data(int stage) const { return data_[static_cast<std::size_t>(stage)]; }
    /// First and last stage of a replica.
    GroupShape tied_embedding() const { return tied_; }
    /// Messages between neighbouring stages that cross nodes: all GPUs of a node send at once.
    GroupShape message_across() const { return {.nodes = 2, .groups_per_node = most_on_a_node_}; }

    /// Node groups of the cluster, ascending, on which the plan's ranks stand, and those of one stage.
    const std::vector<int>& node_groups() const { return all_groups_; }
    const std::vector<int>& node_groups(int stage) const { return groups_of_stage_[static_cast<std::size_t>(stage)]; }
    /// GPUs of the plan in each node group [node groups of the cluster].
    const std::vector<int>& gpus_of_group() const { return gpus_of_group_; }

  private:
    int most_on_a_node_ = 1;  ///< GPUs of the plan
    GroupShape tensor_, context_, tied_;
    std::vector<GroupShape> data_;
    std::vector<int> all_groups_, gpus_of_group_;
    std::vector<std::vector<int>> groups_of_stage_;
};

/// [GPUs of the cluster] the node of each, [nodes] the group of each: for those who look up many.
std::vector<int> nodes_of_gpus(const Cluster& cluster);
std::vector<int> groups_of_nodes(const Cluster& cluster);

}  // namespace headway::scenarios
