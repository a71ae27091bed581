#include "sim/network/topology.h"

#include <algorithm>

namespace headway::sim {

Topology::Topology(const scenarios::Cluster& cluster) : gpus_(cluster.gpus()), racks_(cluster.racks()) {
    link_count_ = 2 * gpus_;
    uplink_bandwidth_.assign(static_cast<std::size_t>(racks_), 0.0);
    int gpu = 0;
    int node = 0;
    for (const scenarios::NodeGroup& group : cluster.node_groups) {
        const scenarios::Node& hardware = group.node;
        for (int n = 0; n < group.count; ++n, ++node) {
            const int rack = cluster.rack_of_node(node);
            node_bandwidth_.push_back(hardware.network.bandwidth.value * hardware.nics);
            for (int slot = 0; slot < hardware.gpus; ++slot, ++gpu) {
                rack_.push_back(rack);
                node_.push_back(node);
                // With more NICs than GPUs each GPU uses its part of them together.
                const double nics_of_gpu = std::max(1.0, static_cast<double>(hardware.nics) / hardware.gpus);
                nic_bandwidth_.push_back(hardware.network.bandwidth.value * nics_of_gpu);
            }
            uplink_bandwidth_[static_cast<std::size_t>(rack)] +=
                hardware.network.bandwidth.value * hardware.nics / cluster.network.oversubscription;
        }
    }
    if (racks_ > 1) {
        uplink_ = link_count_;
        link_count_ += 2 * racks_;
    }
}

LinkPath Topology::out(int gpu, bool leaves_rack) const {
    LinkPath path{port_out(gpu)};
    if (leaves_rack && uplink_ >= 0) path.push_back(uplink_out(rack_of_gpu(gpu)));
    return path;
}

LinkPath Topology::in(int gpu, bool leaves_rack) const {
    LinkPath path{port_in(gpu)};
    if (leaves_rack && uplink_ >= 0) path.push_back(uplink_in(rack_of_gpu(gpu)));
    return path;
}

Route Topology::route(int from_gpu, int to_gpu, bool leaves_rack) const {
    const int offset = leaves_rack && uplink_ >= 0 ? gpus_ : 0;
    Route route;
    route.source = offset + from_gpu;
    route.sink = offset + to_gpu;
    for (const int link : out(from_gpu, leaves_rack)) route.links[static_cast<std::size_t>(route.count++)] = link;
    for (const int link : in(to_gpu, leaves_rack)) route.links[static_cast<std::size_t>(route.count++)] = link;
    return route;
}

std::vector<LinkPath> Topology::sources() const {
    std::vector<LinkPath> paths;
    for (int gpu = 0; gpu < gpus_; ++gpu) paths.push_back(out(gpu, false));
    for (int gpu = 0; uplink_ >= 0 && gpu < gpus_; ++gpu) paths.push_back(out(gpu, true));
    return paths;
}

std::vector<LinkPath> Topology::sinks() const {
    std::vector<LinkPath> paths;
    for (int gpu = 0; gpu < gpus_; ++gpu) paths.push_back(in(gpu, false));
    for (int gpu = 0; uplink_ >= 0 && gpu < gpus_; ++gpu) paths.push_back(in(gpu, true));
    return paths;
}

std::vector<double> Topology::capacities(const scenarios::Plan& plan, const std::vector<bool>& simulated) const {
    // Ranks, and first ranks of simulated workers, in every rack and node.
    struct Users {
        int ranks = 0;
        int planes = 0;
    };
    std::vector<Users> racks(static_cast<std::size_t>(racks_));
    std::vector<int> ranks_of_node(node_bandwidth_.size(), 0);
    const scenarios::Layout& layout = plan.layout;
    for (int replica = 0; replica < layout.data; ++replica) {
        for (int stage = 0; stage < layout.pipeline; ++stage) {
            for (int member = 0; member < layout.ranks_per_worker(); ++member) {
                const int gpu = plan.gpu_of_worker(replica, stage, member);
                Users& rack = racks[static_cast<std::size_t>(rack_of_gpu(gpu))];
                ++rack.ranks;
                ++ranks_of_node[static_cast<std::size_t>(node_of_gpu(gpu))];
                if (member == 0 && simulated[static_cast<std::size_t>(replica)]) ++rack.planes;
            }
        }
    }
    std::vector<double> capacity(static_cast<std::size_t>(link_count_), 1.0);
    const auto set = [&](int link, double value) { capacity[static_cast<std::size_t>(link)] = value; };
    for (int gpu = 0; gpu < gpus_; ++gpu) {
        const auto node = static_cast<std::size_t>(node_of_gpu(gpu));
        const double share = node_bandwidth_[node] / std::max(1, ranks_of_node[node]);
        set(port_out(gpu), std::min(nic_bandwidth_[static_cast<std::size_t>(gpu)], share));
        set(port_in(gpu), std::min(nic_bandwidth_[static_cast<std::size_t>(gpu)], share));
    }
    for (int rack = 0; uplink_ >= 0 && rack < racks_; ++rack) {
        const Users& users = racks[static_cast<std::size_t>(rack)];
        const double part = users.planes > 0 ? static_cast<double>(users.planes) / users.ranks : 1.0;
        set(uplink_out(rack), uplink_bandwidth(rack) * part);
        set(uplink_in(rack), uplink_bandwidth(rack) * part);
    }
    return capacity;
}

}  // namespace headway::sim
