#include "scenarios/costs/placement.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace headway::scenarios {

namespace {

/// Counts the members of one group after another on their nodes; remembers the widest group.
class WidestGroup {
  public:
    explicit WidestGroup(std::size_t nodes) : seen_(nodes, 0), members_(nodes, 0) {}

    void begin() {
        ++group_;
        nodes_ = most_ = 0;
    }
    void add(int node) {
        const auto i = static_cast<std::size_t>(node);
        if (seen_[i] != group_) {
            seen_[i] = group_;
            members_[i] = 0;
            ++nodes_;
        }
        most_ = std::max(most_, ++members_[i]);
    }
    void end() {
        if (nodes_ > widest_.nodes || (nodes_ == widest_.nodes && most_ > widest_.ranks_per_node)) {
            widest_.nodes = nodes_;
            widest_.ranks_per_node = most_;
        }
    }
    GroupShape take(int most_on_a_node) {
        GroupShape shape = widest_;
        shape.groups_per_node = std::max(1, most_on_a_node / shape.ranks_per_node);
        widest_ = GroupShape();
        return shape;
    }

  private:
    std::vector<int> seen_, members_;  // [nodes]
    int group_ = 0, nodes_ = 0, most_ = 0;
    GroupShape widest_;
};

}  // namespace

Placement::Placement(const Layout& layout, std::span<const int> gpu_of_rank, const Cluster& cluster)
    : gpus_of_group_(cluster.node_groups.size(), 0), groups_of_stage_(static_cast<std::size_t>(layout.pipeline)) {
    if (gpu_of_rank.size() != static_cast<std::size_t>(layout.world_size()))
        throw std::invalid_argument("gpu_of_rank has one entry a rank");
    const std::vector<int> node_of_gpu = nodes_of_gpus(cluster), group_of_node = groups_of_nodes(cluster);
    std::vector<int> node_of_rank, used(group_of_node.size(), 0);
    node_of_rank.reserve(gpu_of_rank.size());
    const std::size_t ranks_of_stage = gpu_of_rank.size() / static_cast<std::size_t>(layout.pipeline);
    for (const int gpu : gpu_of_rank) {
        if (gpu < 0 || static_cast<std::size_t>(gpu) >= node_of_gpu.size())
            throw std::invalid_argument("GPU " + std::to_string(gpu) + " is not in the cluster");
        const int node = node_of_gpu[static_cast<std::size_t>(gpu)];
        auto& of_stage = groups_of_stage_[node_of_rank.size() / ranks_of_stage];
        const int group = group_of_node[static_cast<std::size_t>(node)];
        if (of_stage.empty() || of_stage.back() != group) of_stage.push_back(group);
        ++gpus_of_group_[static_cast<std::size_t>(group)];
        node_of_rank.push_back(node);
        most_on_a_node_ = std::max(most_on_a_node_, ++used[static_cast<std::size_t>(node)]);
    }
    for (auto& of_stage : groups_of_stage_) {
        std::sort(of_stage.begin(), of_stage.end());
        of_stage.erase(std::unique(of_stage.begin(), of_stage.end()), of_stage.end());
    }
    for (std::size_t group = 0; group < gpus_of_group_.size(); ++group)
        if (gpus_of_group_[group] > 0) all_groups_.push_back(static_cast<int>(group));

    // Rank order: tensor fastest, then context, data, pipeline.
    WidestGroup groups(group_of_node.size());
    const int t = layout.tensor, c = layout.context, d = layout.data, ranks = layout.world_size();
    const auto add_group = [&](int first, int step, int count) {
        groups.begin();
        for (int i = 0; i < count; ++i) groups.add(node_of_rank[static_cast<std::size_t>(first + i * step)]);
        groups.end();
    };
    for (int first = 0; first < ranks; first += t) add_group(first, 1, t);
    tensor_ = groups.take(most_on_a_node_);
    for (int worker = 0; worker < ranks; worker += t * c)
        for (int member = 0; member < t; ++member) add_group(worker + member, t, c);
    context_ = groups.take(most_on_a_node_);
    for (int p = 0; p < layout.pipeline; ++p) {
        for (int member = 0; member < t; ++member) add_group(p * d * c * t + member, t, d * c);
        data_.push_back(groups.take(most_on_a_node_));
    }
    if (layout.pipeline == 1) return;
    const int last_stage = (layout.pipeline - 1) * d * c * t;
    for (int first = 0; first < d * c * t; ++first) add_group(first, last_stage, 2);
    tied_ = groups.take(most_on_a_node_);
}

std::vector<int> nodes_of_gpus(const Cluster& cluster) {
    std::vector<int> nodes;
    nodes.reserve(static_cast<std::size_t>(cluster.gpus()));
    int node = 0;
    for (const NodeGroup& group : cluster.node_groups)
        for (int i = 0; i < group.count; ++i, ++node)
            nodes.insert(nodes.end(), static_cast<std::size_t>(group.node.gpus), node);
    return nodes;
}

std::vector<int> groups_of_nodes(const Cluster& cluster) {
    std::vector<int> groups;
    for (std::size_t group = 0; group < cluster.node_groups.size(); ++group)
        groups.insert(groups.end(), static_cast<std::size_t>(cluster.node_groups[group].count),
                      static_cast<int>(group));
    return groups;
}

}  // namespace headway::scenarios
