#pragma once

#include <string>
#include <vector>

#include "scenarios/language/hardware.h"
#include "scenarios/language/units.h"

/// The machine: racks of nodes of GPUs, the network between them, and the facility around them.
/// GPUs are numbered 0..gpus()-1, node by node in the order of `node_groups`, slot by slot within a node.
namespace headway::scenarios {

struct Node {
    GpuType gpu;
    int gpus = 8;
    Fabric fabric;   ///< between the GPUs of the node
    int nics = 8;    ///< shared evenly by the node's GPUs, slot by slot
    Fabric network;  ///< of one NIC
    Bytes host_memory;
    BytesPerSecond pcie;  ///< one GPU to host memory, one direction
    bool operator==(const Node&) const = default;
};

/// `count` equal nodes.
struct NodeGroup {
    int count = 1;
    Node node;
    bool operator==(const NodeGroup&) const = default;
};

struct Network {
    int nodes_per_rack = 4;         ///< nodes under one leaf switch
    double oversubscription = 1.0;  ///< NIC bandwidth under a leaf over the leaf's uplink bandwidth (1: non-blocking)
    bool operator==(const Network&) const = default;
};

/// A spare node takes the place, and the numbers, of the lost node it replaces; spares are not among nodes() and
/// gpus().
struct Facility {
    Celsius inlet{25.0};                            ///< air at the node's inlet
    int spare_nodes = 0;                            ///< ready to replace a lost node
    Duration spare_start = Duration::seconds(120);  ///< until a spare has joined
    Duration node_repair = Duration::seconds(4 * 3600);
    Duration gpu_repair = Duration::seconds(4 * 3600);
    BytesPerSecond storage_read{100e9};  ///< whole cluster, for checkpoints
    BytesPerSecond storage_write{50e9};
    bool operator==(const Facility&) const = default;
};

struct Cluster {
    std::string name;
    std::vector<NodeGroup> node_groups;
    Network network;
    Facility facility;

    int nodes() const;
    int gpus() const;
    int racks() const;
    int node_of(int gpu) const;  ///< throws std::out_of_range
    int slot_of(int gpu) const;  ///< position inside its node
    int first_gpu(int node) const;
    int rack_of_node(int node) const { return node / network.nodes_per_rack; }
    int group_of_node(int node) const;  ///< index into node_groups
    const Node& node(int node) const { return node_groups[static_cast<std::size_t>(group_of_node(node))].node; }
    const GpuType& gpu_type(int gpu) const { return node(node_of(gpu)).gpu; }
    bool operator==(const Cluster&) const = default;
};

}  // namespace headway::scenarios
