#pragma once

#include <span>
#include <vector>

#include "scenarios/language/cluster.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"
#include "scenarios/transfer/difference.h"

namespace headway::scenarios {

struct Traffic {
    Bytes in;
    Bytes out;
    bool operator==(const Traffic&) const = default;
};

/// How one ownership of state becomes another.
struct TransferSchedule {
    /// Each element of each kind that a GPU lacks once, from the nearest owner: same node, same rack, elsewhere; from
    /// the checkpoint where no owner is left. Nothing that a GPU has already.
    std::vector<Move> moves;
    Bytes moved;                   ///< sum over the moves
    Bytes from_checkpoint;         ///< of that
    std::vector<Traffic> by_gpu;   ///< [GPUs of the cluster], reads of the checkpoint included
    std::vector<Traffic> by_node;  ///< [nodes], without what stays inside
};

/// `lost` GPUs own nothing any more. Throws std::invalid_argument for plans that do not fit job and cluster and for
/// GPUs that the cluster lacks.
TransferSchedule transfer_schedule(const Job& job, const Cluster& cluster, const Plan& from, const Plan& to,
                                   std::span<const int> lost = {});

}  // namespace headway::scenarios
