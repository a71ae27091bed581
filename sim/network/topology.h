#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "scenarios/language/cluster.h"
#include "scenarios/language/plan.h"
#include "sim/network/flow_network.h"

/// The cluster's network as one plane. The tensor x context ranks of a worker send and receive in lock step, so one of
/// them (its first) stands for all: a rack's uplink, which all of them use, is divided among them. Every GPU has a
/// port, its share of the node's NICs: what sharing a NIC costs is in the costs already, which let all GPUs of a node
/// send at once. The spine itself does not block.
namespace headway::sim {

/// Links of one flow, for the bookkeeping of who shares what.
struct Route {
    int source = 0;
    int sink = 0;
    std::array<std::int32_t, 4> links{};
    int count = 0;
};

class Topology {
  public:
    explicit Topology(const scenarios::Cluster& cluster);

    int links() const { return link_count_; }
    int port_out(int gpu) const { return 2 * gpu; }
    int port_in(int gpu) const { return 2 * gpu + 1; }
    /// -1 in a cluster of one rack.
    int uplink_out(int rack) const { return uplink_ < 0 ? -1 : uplink_ + 2 * rack; }
    int uplink_in(int rack) const { return uplink_ < 0 ? -1 : uplink_ + 2 * rack + 1; }

    /// Way between the ports of two GPUs (also of one GPU with itself: a ring folded onto one replica). `leaves_rack`
    /// as if through both racks' uplinks.
    Route route(int from_gpu, int to_gpu, bool leaves_rack) const;

    std::vector<LinkPath> sources() const;
    std::vector<LinkPath> sinks() const;
    int rack_of_gpu(int gpu) const { return rack_[static_cast<std::size_t>(gpu)]; }
    int node_of_gpu(int gpu) const { return node_[static_cast<std::size_t>(gpu)]; }

    /// Healthy capacity of every link in bytes a second and plane, under a plan; links that the plan does not use keep
    /// their whole capacity. `simulated` [data]: replicas that are simulated; the others are folded onto them, and
    /// where they share an uplink with simulated ones, the simulated ones get only their part of it.
    std::vector<double> capacities(const scenarios::Plan& plan, const std::vector<bool>& simulated) const;

    /// Whole bandwidth of a rack's uplink, one direction, bytes a second.
    double uplink_bandwidth(int rack) const { return uplink_bandwidth_[static_cast<std::size_t>(rack)]; }

  private:
    LinkPath out(int gpu, bool leaves_rack) const;
    LinkPath in(int gpu, bool leaves_rack) const;

    int gpus_ = 0;
    int racks_ = 0;
    int link_count_ = 0;
    int uplink_ = -1;
    std::vector<int> rack_;
    std::vector<int> node_;
    std::vector<double> nic_bandwidth_;     ///< [GPUs] of one NIC of its node, or of those it has to itself
    std::vector<double> node_bandwidth_;    ///< [nodes] of all NICs
    std::vector<double> uplink_bandwidth_;  ///< [racks]
};

}  // namespace headway::sim
