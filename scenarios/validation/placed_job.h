#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/language/cluster.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"
#include "scenarios/validation/hardware_names.h"
#include "scenarios/validation/measured_table.h"

namespace headway::scenarios {

/// A row of a table in the words of a scenario.
struct PlacedJob {
    Job job;
    Cluster cluster;
    Plan plan;
};

/// How a row's ranks sit on its nodes: filling them, or with the tensor and context ranks of one stage on each.
enum class NodeFill { kFullNodes, kOneWorkerANode };

/// Rank r sits on GPU r. Throws std::invalid_argument with the reason where the
/// row cannot be expressed: unknown hardware or software, degrees that do not
/// multiply to its GPUs, a global batch that no micro-batches make.
PlacedJob place_job(const MeasuredJob& measured, NodeFill fill, HardwareNames& names,
                    const std::optional<std::string>& stack, std::vector<std::string>& notes);

}  // namespace headway::scenarios
