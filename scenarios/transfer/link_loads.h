#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scenarios/language/cluster.h"
#include "scenarios/language/units.h"
#include "scenarios/transfer/ownership.h"

namespace headway::scenarios {

constexpr int kFromCheckpoint = -1;  ///< in place of a sending GPU

/// Where GPUs and nodes stand, and how fast their links are, looked up without search.
class LinkMap {
  public:
    explicit LinkMap(const Cluster& cluster);

    int gpus() const { return static_cast<int>(node_of_gpu_.size()); }
    int nodes() const { return static_cast<int>(kind_of_node_.size()); }
    int racks() const { return static_cast<int>(uplink_.size()); }
    int node_of(int gpu) const { return node_of_gpu_[static_cast<std::size_t>(gpu)]; }
    int rack_of_node(int node) const { return node / nodes_per_rack_; }
    int rack_of(int gpu) const { return rack_of_node(node_of(gpu)); }
    int slot_of(int gpu) const { return slot_of_gpu_[static_cast<std::size_t>(gpu)]; }
    const Node& node(int node) const {
        return kinds_[static_cast<std::size_t>(kind_of_node_[static_cast<std::size_t>(node)])].node;
    }
    /// Bytes a second, one direction, that large messages reach.
    double fabric(int node) const { return kind(node).fabric; }         ///< of one GPU
    double network(int node) const { return kind(node).network; }       ///< of one GPU
    double network_of_node(int node) const { return kind(node).nics; }  ///< of all NICs of the node
    double uplink(int rack) const { return uplink_[static_cast<std::size_t>(rack)]; }
    double storage_read() const { return storage_read_; }

  private:
    struct Kind {
        Node node;
        double fabric = 0.0;
        double network = 0.0;
        double nics = 0.0;
    };
    const Kind& kind(int node) const {
        return kinds_[static_cast<std::size_t>(kind_of_node_[static_cast<std::size_t>(node)])];
    }

    int nodes_per_rack_ = 1;
    double storage_read_ = 0.0;
    std::vector<Kind> kinds_;
    std::vector<int> kind_of_node_;
    std::vector<int> node_of_gpu_;
    std::vector<int> slot_of_gpu_;
    std::vector<double> uplink_;  ///< [racks]
};

/// Bytes on a link in one direction, by what they are.
struct Load {
    std::int64_t weights = 0;
    std::int64_t optimizer = 0;
    std::int64_t total() const { return weights + optimizer; }
    void add(StateKind kind, std::int64_t bytes) { (kind == StateKind::kWeights ? weights : optimizer) += bytes; }
    bool operator==(const Load&) const = default;
};

struct GpuLoads {
    Load fabric_in, fabric_out;    ///< within its node
    Load network_in, network_out;  ///< from and to other nodes
    Load from_checkpoint;
    Load in() const {
        return {fabric_in.weights + network_in.weights + from_checkpoint.weights,
                fabric_in.optimizer + network_in.optimizer + from_checkpoint.optimizer};
    }
    bool operator==(const GpuLoads&) const = default;
};

/// What a set of transfers puts on every link.
class LinkLoads {
  public:
    explicit LinkLoads(const LinkMap& map);
    /// No transfers; keeps the room it has.
    void clear();

    /// `from` may be kFromCheckpoint.
    void add(int from, int to, StateKind kind, std::int64_t bytes);
    /// Each transfer so far stands for `copies` equal ones between the GPUs next to its own, in the same two nodes.
    void stand_for(int copies) { copies_ = copies; }

    const GpuLoads& of_gpu(int gpu) const {
        static constexpr GpuLoads kNone{};
        const int place = place_[static_cast<std::size_t>(gpu)];
        return place < 0 ? kNone : gpus_[static_cast<std::size_t>(place)];
    }
    /// GPUs that send or receive, in order of appearance; of folded ones the first.
    const std::vector<int>& touched() const { return touched_; }
    Load moved() const { return {moved_.weights * copies_, moved_.optimizer * copies_}; }
    Load from_checkpoint() const { return {from_checkpoint_.weights * copies_, from_checkpoint_.optimizer * copies_}; }

    /// The busiest link's time at full bandwidth when `weights` and `optimizer` times the bytes of each kind move, all
    /// at once: the GPU's port on its node's fabric and on the network, the node's NICs, the rack's uplink, storage.
    double seconds(double weights, double optimizer) const;

  private:
    GpuLoads& touch(int gpu);

    const LinkMap* map_;
    int copies_ = 1;
    std::vector<int> place_;  ///< [GPUs] among `gpus_`, or -1
    std::vector<GpuLoads> gpus_;
    std::vector<int> touched_;
    std::vector<Load> rack_in_, rack_out_;
    Load moved_, from_checkpoint_;
    struct OfNode {
        double in = 0.0, out = 0.0;
    };
    mutable std::vector<OfNode> of_node_;  ///< scratch
};

}  // namespace headway::scenarios
