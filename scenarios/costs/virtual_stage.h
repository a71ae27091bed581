#pragma once

#include "scenarios/costs/iteration_costs.h"
#include "scenarios/costs/layer.h"

namespace headway::scenarios {

/// What `layers` layers of `virtual_stage` cost on one rank; the first also holds the embedding, the last the head. GPU
/// and host run as two queues: whoever is behind sets the pace.
VirtualStageCosts virtual_stage_costs(const RankContext& rank, int virtual_stage, int layers, const LayerCosts& layer,
                                      const EdgeCosts& embedding, const EdgeCosts& head);

}  // namespace headway::scenarios
