#pragma once

#include "scenarios/language/cluster.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"

namespace headway::scenarios {

struct CheckpointCosts {
  Bytes state;            ///< parameters and optimizer state of the whole job, each element once
  Duration save;          ///< time the job stands still for one save
  Duration load;
  Duration restart;       ///< detection is not included; load is
};

CheckpointCosts checkpoint_costs(const Job& job, const Cluster& cluster, const Plan& plan);

}  // namespace headway::scenarios
