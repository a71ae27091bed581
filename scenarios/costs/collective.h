#pragma once

#include "scenarios/language/cluster.h"
#include "scenarios/language/units.h"

/// Time of collectives on healthy, otherwise idle links.
namespace headway::scenarios {

enum class Collective { kAllReduce, kReduceScatter, kAllGather, kBroadcast, kSendReceive };

/// A group of ranks as the network sees it.
struct GroupShape {
  int nodes = 1;
  int ranks_per_node = 1;          ///< of this group
  int groups_per_node = 1;         ///< equal groups that run the same collective at the same time and share the node's NICs
  int ranks() const { return nodes * ranks_per_node; }
};

/// Time of one collective. `message` counts bytes as nccl-tests does (the full buffer: input of a reduce-scatter, output of
/// an all-gather). Zero for one rank. Throws std::invalid_argument if a count in `shape` is < 1.
Duration collective_time(Collective collective, Bytes message, const GroupShape& shape, const Node& node);

}  // namespace headway::scenarios
