#include "scenarios/transfer/link_loads.h"

#include <algorithm>
#include <cstddef>

namespace headway::scenarios {

namespace {

/// Without a switch a GPU reaches a peer only over the link between the two.
double port_on_fabric(const Node& node) {
    const double port = node.fabric.bandwidth.value * node.fabric.efficiency;
    if (!node.fabric.mesh || node.gpus <= 2) return port;
    return port * (node.fabric.mesh_shares.empty() ? 1.0 / (node.gpus - 1) : node.fabric.mesh_shares.front());
}

}  // namespace

LinkMap::LinkMap(const Cluster& cluster)
    : nodes_per_rack_(cluster.network.nodes_per_rack), storage_read_(cluster.facility.storage_read.value) {
    uplink_.assign(static_cast<std::size_t>(cluster.racks()), 0.0);
    node_of_gpu_.reserve(static_cast<std::size_t>(cluster.gpus()));
    slot_of_gpu_.reserve(static_cast<std::size_t>(cluster.gpus()));
    int node = 0;
    for (const NodeGroup& group : cluster.node_groups) {
        Kind kind;
        kind.node = group.node;
        const int nics = std::max(1, group.node.nics);
        const double one = group.node.network.bandwidth.value * group.node.network.efficiency;
        kind.fabric = port_on_fabric(group.node);
        // With fewer NICs than GPUs a GPU that sends alone has a whole one; the node's NICs are a limit of their own.
        kind.network = one * std::max(1.0, static_cast<double>(nics) / std::max(1, group.node.gpus));
        kind.nics = one * nics;
        for (int i = 0; i < group.count; ++i, ++node) {
            kind_of_node_.push_back(static_cast<int>(kinds_.size()));
            uplink_[static_cast<std::size_t>(rack_of_node(node))] += kind.nics / cluster.network.oversubscription;
            for (int slot = 0; slot < group.node.gpus; ++slot) {
                node_of_gpu_.push_back(node);
                slot_of_gpu_.push_back(slot);
            }
        }
        kinds_.push_back(std::move(kind));
    }
}

LinkLoads::LinkLoads(const LinkMap& map)
    : map_(&map),
      place_(static_cast<std::size_t>(map.gpus()), -1),
      rack_in_(static_cast<std::size_t>(map.racks())),
      rack_out_(static_cast<std::size_t>(map.racks())) {}

void LinkLoads::clear() {
    for (const int gpu : touched_) place_[static_cast<std::size_t>(gpu)] = -1;
    gpus_.clear();
    touched_.clear();
    std::fill(rack_in_.begin(), rack_in_.end(), Load{});
    std::fill(rack_out_.begin(), rack_out_.end(), Load{});
    moved_ = from_checkpoint_ = Load{};
    copies_ = 1;
}

GpuLoads& LinkLoads::touch(int gpu) {
    int& place = place_[static_cast<std::size_t>(gpu)];
    if (place < 0) {
        place = static_cast<int>(gpus_.size());
        gpus_.emplace_back();
        touched_.push_back(gpu);
    }
    return gpus_[static_cast<std::size_t>(place)];
}

void LinkLoads::add(int from, int to, StateKind kind, std::int64_t bytes) {
    moved_.add(kind, bytes);
    if (from == kFromCheckpoint) {
        from_checkpoint_.add(kind, bytes);
        touch(to).from_checkpoint.add(kind, bytes);
        return;
    }
    const int sender = map_->node_of(from), receiver = map_->node_of(to);
    if (sender == receiver) {
        touch(from).fabric_out.add(kind, bytes);
        touch(to).fabric_in.add(kind, bytes);
        return;
    }
    touch(from).network_out.add(kind, bytes);
    touch(to).network_in.add(kind, bytes);
    const int out = map_->rack_of_node(sender), in = map_->rack_of_node(receiver);
    if (out == in) return;
    rack_out_[static_cast<std::size_t>(out)].add(kind, bytes);
    rack_in_[static_cast<std::size_t>(in)].add(kind, bytes);
}

double LinkLoads::seconds(double weights, double optimizer) const {
    const auto bytes = [&](const Load& load) {
        return weights * static_cast<double>(load.weights) + optimizer * static_cast<double>(load.optimizer);
    };
    of_node_.assign(static_cast<std::size_t>(map_->nodes()), OfNode{});
    double longest = 0.0;
    const auto take = [&](double amount, double bandwidth) {
        if (amount > 0.0) longest = std::max(longest, amount / bandwidth);
    };
    for (const int gpu : touched_) {
        const GpuLoads& loads = of_gpu(gpu);
        const int node = map_->node_of(gpu);
        take(std::max(bytes(loads.fabric_in), bytes(loads.fabric_out)), map_->fabric(node));
        const double in = bytes(loads.network_in) + bytes(loads.from_checkpoint), out = bytes(loads.network_out);
        take(std::max(in, out), map_->network(node));
        OfNode& sums = of_node_[static_cast<std::size_t>(node)];
        sums.in += in;
        sums.out += out;
    }
    for (int node = 0; node < map_->nodes(); ++node) {
        const OfNode& sums = of_node_[static_cast<std::size_t>(node)];
        take(copies_ * std::max(sums.in, sums.out), map_->network_of_node(node));
    }
    for (int rack = 0; rack < map_->racks(); ++rack) {
        const auto place = static_cast<std::size_t>(rack);
        take(copies_ * std::max(bytes(rack_in_[place]), bytes(rack_out_[place])), map_->uplink(rack));
    }
    take(copies_ * bytes(from_checkpoint_), map_->storage_read());
    return longest;
}

}  // namespace headway::scenarios
