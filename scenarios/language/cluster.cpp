#include "scenarios/language/cluster.h"

#include <stdexcept>

namespace headway::scenarios {
namespace {

struct GroupPosition {
    std::size_t group = 0;
    int first_node = 0;
    int first_gpu = 0;
};

[[noreturn]] void no_such_part(const char* what, int number) {
    throw std::out_of_range("the cluster has no " + std::string(what) + " " + std::to_string(number));
}

GroupPosition position_of_node(const Cluster& cluster, int node) {
    GroupPosition at;
    for (; at.group < cluster.node_groups.size(); ++at.group) {
        const NodeGroup& group = cluster.node_groups[at.group];
        if (node >= 0 && node < at.first_node + group.count) return at;
        at.first_node += group.count;
        at.first_gpu += group.count * group.node.gpus;
    }
    no_such_part("node", node);
}

GroupPosition position_of_gpu(const Cluster& cluster, int gpu) {
    GroupPosition at;
    for (; at.group < cluster.node_groups.size(); ++at.group) {
        const NodeGroup& group = cluster.node_groups[at.group];
        if (gpu >= 0 && gpu < at.first_gpu + group.count * group.node.gpus) return at;
        at.first_node += group.count;
        at.first_gpu += group.count * group.node.gpus;
    }
    no_such_part("GPU", gpu);
}

}  // namespace

int Cluster::nodes() const {
    int count = 0;
    for (const NodeGroup& group : node_groups) count += group.count;
    return count;
}

int Cluster::gpus() const {
    int count = 0;
    for (const NodeGroup& group : node_groups) count += group.count * group.node.gpus;
    return count;
}

int Cluster::racks() const {
    return (nodes() + network.nodes_per_rack - 1) / network.nodes_per_rack;
}

int Cluster::node_of(int gpu) const {
    const GroupPosition at = position_of_gpu(*this, gpu);
    return at.first_node + (gpu - at.first_gpu) / node_groups[at.group].node.gpus;
}

int Cluster::slot_of(int gpu) const {
    const GroupPosition at = position_of_gpu(*this, gpu);
    return (gpu - at.first_gpu) % node_groups[at.group].node.gpus;
}

int Cluster::first_gpu(int node) const {
    const GroupPosition at = position_of_node(*this, node);
    return at.first_gpu + (node - at.first_node) * node_groups[at.group].node.gpus;
}

int Cluster::group_of_node(int node) const {
    return static_cast<int>(position_of_node(*this, node).group);
}

}  // namespace headway::scenarios
