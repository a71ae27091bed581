#include "scenarios/costs/collective.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <string>

namespace headway::scenarios {

namespace {

/// Share of the wire that carries data: NCCL's tuner counts a quarter for LL and 0.92 for LL128 (120 of 128 bytes).
constexpr double kProtocolShare[] = {0.25, 0.92, 1.0};
/// Share of a ring's bandwidth that a tree keeps: each node feeds two trees and waits for two children. This and the
/// next two are fitted to the all-reduces of scenarios/measured (NCCL's tuner multiplies a tree's bandwidth by 0.5 to
/// 0.9 up to 64 MB).
constexpr double kTreeShare = 0.45;
/// A tree's edge passes on one message where a ring's edge between nodes passes on those of all ranks behind it.
constexpr double kTreeHopShare = 0.5;
/// Under Simple a tree passes on chunks of 256 KiB, which one channel takes about this long to fill.
constexpr double kTreeChunkSeconds = 12e-6;
/// In-switch reduction: share of the line rate at which a buffer is reduced and multicast (assumed).
constexpr double kInSwitchShare = 0.6;
/// How latency of network hops and transfer combine: (latency^p + transfer^p)^(1/p). Large p: one hides under the other
/// (fitted).
constexpr double kOverlapExponent = 4.0;

struct ProtocolChoice {
    CollectiveProtocol protocol;
    double share;
    const FabricProtocol& inside;
    const FabricProtocol& across;
};

double overlapped(double latency, double transfer) {
    const double longer = std::max(latency, transfer);
    if (longer <= 0.0) return 0.0;
    return longer *
           std::pow(std::pow(latency / longer, kOverlapExponent) + std::pow(transfer / longer, kOverlapExponent),
                    1.0 / kOverlapExponent);
}

/// One group on one kind of node; all bandwidths in bytes a second, all times in seconds.
class GroupLinks {
  public:
    GroupLinks(const GroupShape& shape, const Node& node) : shape_(shape), node_(node) {
        if (node.fabric.mesh && node.gpus > 1 && shape.ranks_per_node > 1)
            linked_ = mesh_share(shape.ranks_per_node, node);
        if (shape.nodes == 1) return;
        if (node.nics < 1) throw std::invalid_argument("a group over several nodes needs a NIC in each");
        // A GPU of a node with more NICs than GPUs uses all of its own; with fewer, GPUs share.
        const double of_one_rank = std::max(1.0, static_cast<double>(node.nics) / std::max(1, node.gpus));
        const double groups = shape.groups_per_node;
        nics_ = std::min(of_one_rank * shape.ranks_per_node * groups, static_cast<double>(node.nics)) / groups;
        nics_of_one_message_ = std::min(of_one_rank, node.nics / groups);
    }

    bool one_node() const { return shape_.nodes == 1; }
    bool one_rank_a_node() const { return shape_.ranks_per_node == 1; }

    double wire(double share) const { return node_.fabric.bandwidth.value * node_.fabric.efficiency * share * linked_; }
    double wire_of_pairs(double share, bool everybody) const {
        return everybody ? node_.fabric.bandwidth.value * node_.fabric.all_to_all_efficiency * share * linked_
                         : wire(share);
    }
    /// Time of a pass over `bytes` of GPU memory; none where the fabric states no pace.
    double pass_seconds(double bytes, double share) const {
        return node_.fabric.copy.value > 0.0 ? bytes / (node_.fabric.copy.value * share) : 0.0;
    }
    double network(const ProtocolChoice& choice, double share) const {
        return limited(node_.network.bandwidth.value * node_.network.efficiency * share, choice) * nics_;
    }
    double all_to_all(const ProtocolChoice& choice) const {
        const double one = node_.network.bandwidth.value * node_.network.all_to_all_efficiency * choice.share;
        return limited(one, choice) * nics_ / shape_.ranks_per_node;
    }
    double message(const ProtocolChoice& choice) const {
        return limited(node_.network.bandwidth.value * node_.network.efficiency * choice.share, choice) *
               nics_of_one_message_;
    }

  private:
    static double mesh_share(int ranks, const Node& node) {
        const auto place = static_cast<std::size_t>(ranks - 2);
        if (place < node.fabric.mesh_shares.size()) return node.fabric.mesh_shares[place];
        return std::min(1.0, (ranks - 1.0) / (node.gpus - 1.0));
    }
    static double limited(double bandwidth, const ProtocolChoice& choice) {
        return choice.across.limit.value > 0.0 ? std::min(bandwidth, choice.across.limit.value) : bandwidth;
    }

    const GroupShape& shape_;
    const Node& node_;
    double linked_ = 1.0;               ///< share of a GPU's links that lead to members of the group
    double nics_ = 0.0;                 ///< that one group has to itself
    double nics_of_one_message_ = 0.0;  ///< that a single message of one group has to itself
};

/// 2 for an all-reduce, which is a reduce-scatter and an all-gather.
int passes_of(Collective collective) {
    return collective == Collective::kAllReduce ? 2 : 1;
}

double ring_seconds(Collective collective, double bytes, const GroupShape& shape, const GroupLinks& links,
                    const ProtocolChoice& choice) {
    const int passes = passes_of(collective);
    const int ranks = shape.ranks();
    const bool whole = collective == Collective::kBroadcast || collective == Collective::kReduce;
    const int hops = passes * (ranks - 1);
    // The chunk that starts behind a node boundary crosses all of them, since the hop it leaves out is inside a node.
    const int across = links.one_node() ? 0 : links.one_rank_a_node() ? hops : passes * shape.nodes;
    const double on_each_wire = whole ? bytes : bytes * hops / ranks;
    const double latency = choice.inside.start.s() + (hops - across) * choice.inside.hop.s();
    const double inside = links.one_rank_a_node() ? 0.0
                                                  : on_each_wire / links.wire(choice.share) +
                                                        links.pass_seconds(bytes * passes / 2.0, choice.share);
    if (links.one_node()) return latency + inside;
    return latency + overlapped(across * choice.across.hop.s(),
                                std::max(inside, on_each_wire / links.network(choice, choice.share)));
}

/// Two trees over the nodes, a chain inside each; reduced up and sent down.
double tree_seconds(double bytes, const GroupShape& shape, const GroupLinks& links, const ProtocolChoice& choice) {
    const double share = choice.share * kTreeShare;
    const double chunk = choice.protocol == CollectiveProtocol::kSimple ? kTreeChunkSeconds : 0.0;
    const double latency = choice.inside.start.s() + 2.0 * (shape.ranks_per_node - 1) * (choice.inside.hop.s() + chunk);
    const double inside =
        links.one_rank_a_node() ? 0.0 : 2.0 * bytes / links.wire(share) + links.pass_seconds(bytes, share);
    if (links.one_node()) return latency + inside;
    const int depth = std::bit_width(static_cast<unsigned>(shape.nodes - 1));  // ceil(log2(nodes))
    return latency + overlapped(2.0 * depth * (kTreeHopShare * choice.across.hop.s() + 2.0 * chunk),
                                std::max(inside, 2.0 * bytes / links.network(choice, share)));
}

/// Messages from each rank to `near` ranks of its node and `far` ranks elsewhere, one after the other.
double pairs_seconds(Collective collective, double bytes, const GroupShape& shape, const GroupLinks& links,
                     const ProtocolChoice& choice) {
    const bool everybody = collective == Collective::kAllToAll;
    const double near = everybody ? shape.ranks_per_node - 1 : shape.ranks_per_node > 1 ? 1 : 0;
    const double far = everybody ? shape.ranks() - shape.ranks_per_node : links.one_node() ? 0 : 1;
    const double part = everybody ? bytes / shape.ranks() : bytes;
    const double latency = choice.inside.start.s() + near * choice.inside.hop.s() + far * choice.across.message.s();
    double transfer = 0.0;
    if (near > 0)
        transfer =
            near * part / links.wire_of_pairs(choice.share, everybody) + links.pass_seconds(bytes / 2.0, choice.share);
    if (far > 0)
        transfer = std::max(transfer, far * part / (everybody ? links.all_to_all(choice) : links.message(choice)));
    return latency + transfer;
}

void check_group(Bytes message, const GroupShape& shape) {
    const auto check = [](int count, const char* name) {
        if (count < 1)
            throw std::invalid_argument(std::string(name) + " of a group is at least 1, not " + std::to_string(count));
    };
    check(shape.nodes, "nodes");
    check(shape.ranks_per_node, "ranks_per_node");
    check(shape.groups_per_node, "groups_per_node");
    if (message.count() < 0) throw std::invalid_argument("a message has no negative size");
}

}  // namespace

const char* name_of(Collective collective) {
    switch (collective) {
        case Collective::kAllReduce:
            return "all_reduce";
        case Collective::kReduceScatter:
            return "reduce_scatter";
        case Collective::kAllGather:
            return "all_gather";
        case Collective::kBroadcast:
            return "broadcast";
        case Collective::kReduce:
            return "reduce";
        case Collective::kAllToAll:
            return "alltoall";
        case Collective::kSendReceive:
            return "sendrecv";
    }
    throw std::invalid_argument("not a collective");
}

CollectiveCost collective_cost(Collective collective, Bytes message, const GroupShape& shape, const Node& node) {
    check_group(message, shape);
    if (shape.ranks() == 1) return {};
    const GroupLinks links(shape, node);
    const double bytes = static_cast<double>(message.count());
    const ProtocolChoice choices[] = {
        {CollectiveProtocol::kLowLatency, kProtocolShare[0], node.fabric.low_latency, node.network.low_latency},
        {CollectiveProtocol::kLowLatency128, kProtocolShare[1], node.fabric.low_latency_128,
         node.network.low_latency_128},
        {CollectiveProtocol::kSimple, kProtocolShare[2], node.fabric.simple, node.network.simple}};

    double best = -1.0;
    CollectiveCost cost;
    const auto offer = [&](double seconds, CollectiveAlgorithm algorithm, CollectiveProtocol protocol) {
        if (best >= 0.0 && seconds >= best) return;
        best = seconds;
        cost = {Duration::seconds(seconds), algorithm, protocol};
    };
    const bool pairs = collective == Collective::kAllToAll || collective == Collective::kSendReceive;
    for (const ProtocolChoice& choice : choices) {
        if (pairs) {
            // NCCL sends single messages under LL or Simple only.
            if (choice.protocol != CollectiveProtocol::kLowLatency128)
                offer(pairs_seconds(collective, bytes, shape, links, choice), CollectiveAlgorithm::kPairs,
                      choice.protocol);
            continue;
        }
        offer(ring_seconds(collective, bytes, shape, links, choice), CollectiveAlgorithm::kRing, choice.protocol);
        if (collective == Collective::kAllReduce)
            offer(tree_seconds(bytes, shape, links, choice), CollectiveAlgorithm::kTree, choice.protocol);
    }
    if (collective == Collective::kAllReduce && links.one_node() && node.fabric.reduces_in_switch)
        offer(node.fabric.simple.start.s() + 2.0 * node.fabric.simple.hop.s() + bytes / links.wire(kInSwitchShare),
              CollectiveAlgorithm::kInSwitch, CollectiveProtocol::kSimple);
    return cost;
}

Duration collective_time(Collective collective, Bytes message, const GroupShape& shape, const Node& node) {
    return collective_cost(collective, message, shape, node).time;
}

}  // namespace headway::scenarios
