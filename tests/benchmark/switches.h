#pragma once

#include "scenarios/language/cluster.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"

/// Switches of plans to measure the transfer costs on.
namespace headway::benchmarks {

enum class Switch {
    kShares,             ///< micro-batches between replicas
    kLayerEverywhere,    ///< a layer from one stage to the next, in all replicas
    kLayerInOneReplica,  ///< the same in one
    kNodesSwapped,       ///< two nodes change places
    kPipelineHalved,     ///< t8 p16 to t8 p8, twice the replicas
    kTensorHalved,       ///< t8 p16 to t4 p16, twice the replicas
};

/// GPT-3 175B, tensor 8, pipeline 16, distributed optimizer, 8 GPUs a node.
struct SwitchCase {
    SwitchCase(Switch what, int replicas);
    scenarios::Job job;
    scenarios::Cluster cluster;
    scenarios::Plan from;
    scenarios::Plan to;
};

}  // namespace headway::benchmarks
