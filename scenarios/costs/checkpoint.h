#pragma once

#include "scenarios/language/cluster.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"

namespace headway::scenarios {

struct CheckpointCosts {
    Bytes state;    ///< parameters and optimizer state of the whole job, each element once
    Duration save;  ///< time the job stands still for one save
    Duration load;
    Duration restart;  ///< detection is not included; load is
};

/// State is the 16-bit parameters, fp32 master weights and two Adam moments: 14 bytes a parameter. It is written once,
/// by the ranks of the first replica, or by all with a distributed optimizer, over the slower of the storage, the NICs
/// of the writing nodes and (asynchronous saves, which only wait for host memory) PCIe. Every replica reads what its
/// ranks hold.
CheckpointCosts checkpoint_costs(const Job& job, const Cluster& cluster, const Plan& plan);

}  // namespace headway::scenarios
