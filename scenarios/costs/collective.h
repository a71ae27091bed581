#pragma once

#include "scenarios/language/cluster.h"
#include "scenarios/language/units.h"

/// Time of collectives on healthy, otherwise idle links, as NCCL runs them: the fastest of its algorithms (ring, tree,
/// in-switch reduction) under the fastest of its protocols. Formulas are those of NCCL's own tuner and of nccl-tests
/// (PERFORMANCE.md), with two additions that its measurements ask for: a pass over the buffer in GPU memory, and
/// latency of network hops that hides under the transfer, since several slots are in flight.
namespace headway::scenarios {

enum class Collective { kAllReduce, kReduceScatter, kAllGather, kBroadcast, kReduce, kAllToAll, kSendReceive };

/// "all_reduce", ..., as in tables and messages.
const char* name_of(Collective collective);

enum class CollectiveAlgorithm { kNone, kRing, kTree, kInSwitch, kPairs };  ///< kNone: one rank
enum class CollectiveProtocol { kLowLatency, kLowLatency128, kSimple };

/// A group of ranks as the network sees it.
struct GroupShape {
    int nodes = 1;
    int ranks_per_node = 1;   ///< of this group
    int groups_per_node = 1;  ///< equal groups that run the same collective at the same time and share the node's NICs
    int ranks() const { return nodes * ranks_per_node; }
};

struct CollectiveCost {
    Duration time;
    CollectiveAlgorithm algorithm = CollectiveAlgorithm::kNone;
    CollectiveProtocol protocol = CollectiveProtocol::kSimple;
};

/// `message` counts bytes as nccl-tests does: the buffer of a rank; for reduce-scatter its input and for all-gather its
/// output (the gathered buffer). A send-receive passes the buffer to the next rank, all ranks at once: across nodes one
/// message a node and direction, so a message between two stages is {.nodes = 2, .groups_per_node = ranks that send at
/// once}. Zero for one rank. Grows with the message, with the nodes and, inside one node with a switch, with the ranks
/// (elsewhere more ranks a node may bring more NICs or more links). Throws std::invalid_argument if a count in `shape`
/// is < 1 or the message is negative.
CollectiveCost collective_cost(Collective collective, Bytes message, const GroupShape& shape, const Node& node);
Duration collective_time(Collective collective, Bytes message, const GroupShape& shape, const Node& node);

}  // namespace headway::scenarios
