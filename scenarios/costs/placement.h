#pragma once

#include <vector>

#include "scenarios/costs/collective.h"
#include "scenarios/language/cluster.h"
#include "scenarios/language/plan.h"

/// Where the groups of a plan lie: what a collective sees of the network. Of unequal groups the widest counts.
namespace headway::scenarios {

class Placement {
  public:
    Placement(const Plan& plan, const Cluster& cluster);

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

  private:
    GroupShape widest(const std::vector<std::vector<int>>& groups) const;

    const Plan& plan_;
    std::vector<int> node_of_rank_;
    int most_on_a_node_ = 1;  ///< GPUs of the plan
    GroupShape tensor_, context_, tied_;
    std::vector<GroupShape> data_;
};

}  // namespace headway::scenarios
