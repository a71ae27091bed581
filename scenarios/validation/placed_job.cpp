#include "scenarios/validation/placed_job.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "scenarios/language/strategy.h"

namespace headway::scenarios {

PlacedJob place_job(const MeasuredJob& measured, NodeFill fill, HardwareNames& names,
                    const std::optional<std::string>& stack, std::vector<std::string>& notes) {
    const Layout& layout = measured.layout;
    if (layout.world_size() != measured.gpus) {
        throw std::invalid_argument(
            "tensor " + std::to_string(layout.tensor) + " x pipeline " + std::to_string(layout.pipeline) + " x data " +
            std::to_string(layout.data) + " x context " + std::to_string(layout.context) + " = " +
            std::to_string(layout.world_size()) + ", but the row has " + std::to_string(measured.gpus) + " GPUs");
    }
    if (measured.global_batch % measured.micro_batch != 0) {
        throw std::invalid_argument("global_batch " + std::to_string(measured.global_batch) +
                                    " is not a multiple of micro_batch " + std::to_string(measured.micro_batch));
    }
    if (measured.global_batch / measured.micro_batch < layout.data) {
        throw std::invalid_argument("global_batch " + std::to_string(measured.global_batch) +
                                    " leaves replicas without a micro-batch");
    }

    // Work of a prediction grows with this; a real job has a thousandth of it.
    constexpr std::int64_t kMostOperations = 20'000'000;
    if (std::int64_t{measured.global_batch} / measured.micro_batch / layout.data * layout.virtual_stages() >
        kMostOperations) {
        throw std::invalid_argument("more micro-batches times stages than can be predicted (20 million a replica)");
    }

    PlacedJob placed;
    placed.job.model = measured.model;
    placed.job.precision = measured.precision;
    placed.job.global_batch = measured.global_batch;
    placed.job.micro_batch = measured.micro_batch;
    placed.job.stack = names.stack(measured.software, stack, notes);

    NodeGroup group;
    group.node = names.node(measured.cluster, notes);
    if (fill == NodeFill::kOneWorkerANode) {
        group.node.gpus = std::min(group.node.gpus, layout.ranks_per_worker());
        group.node.nics = std::min(group.node.nics, group.node.gpus);
    }
    group.count = (measured.gpus + group.node.gpus - 1) / group.node.gpus;
    placed.cluster.name = measured.cluster.gpu;
    placed.cluster.node_groups = {group};

    Strategy strategy;
    strategy.layout = layout;
    strategy.placement.resize(static_cast<std::size_t>(measured.gpus));
    std::iota(strategy.placement.begin(), strategy.placement.end(), 0);
    placed.plan = initial_plan(strategy, placed.job, placed.cluster);
    for (const std::string& assumption : measured.assumed) {
        if (std::find(notes.begin(), notes.end(), assumption) == notes.end()) notes.push_back(assumption);
    }
    return placed;
}

}  // namespace headway::scenarios
