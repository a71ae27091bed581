#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "scenarios/costs/parameters.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"
#include "scenarios/transfer/ownership.h"

/// Ownership once more, element by element and rank by rank, from the words of ownership.h alone.
namespace headway::scenarios::transfer_test {

/// Kind of block, layer, kind of state, element.
using Element = std::tuple<BlockKind, int, StateKind, std::int64_t>;

/// What a worker of `stage` in `replica` holds: kind of block, layer, elements, whether split.
struct HeldBlock {
    BlockKind kind;
    int layer;
    std::int64_t elements;
    bool split;
};

inline std::vector<HeldBlock> blocks_on(const Job& job, const Plan& plan, int replica, int stage) {
    const Layout& layout = plan.layout;
    const std::int64_t rows = padded_vocabulary(job, layout) * job.model.hidden;
    std::vector<HeldBlock> blocks;
    if (stage == 0) {
        blocks.push_back({BlockKind::kEmbedding, -1, rows, true});
        blocks.push_back({BlockKind::kPositions, -1, position_parameters(job.model), false});
    }
    int layer = 0;
    for (int k = 0; k < layout.virtual_stages(); ++k)
        for (int i = 0; i < plan.layers(replica, k); ++i, ++layer) {
            if (k % layout.pipeline != stage) continue;
            blocks.push_back({BlockKind::kLayerSplit, layer, layer_parameters(job.model).split, true});
            blocks.push_back({BlockKind::kLayerReplicated, layer, layer_parameters(job.model).replicated, false});
        }
    if (stage == layout.pipeline - 1) {
        blocks.push_back({BlockKind::kFinalNorm, -1, final_norm_parameters(job.model), false});
        if (!job.model.tied_embedding) blocks.push_back({BlockKind::kHead, -1, rows, true});
        if (job.model.tied_embedding && layout.pipeline > 1) blocks.push_back({BlockKind::kEmbedding, -1, rows, true});
    }
    return blocks;
}

/// [GPUs] the elements that each GPU owns.
inline std::vector<std::set<Element>> elements_of_gpus(const Job& job, const Plan& plan, int gpus) {
    const Layout& layout = plan.layout;
    const std::int64_t shards = std::int64_t{layout.data} * layout.context;
    std::vector<std::set<Element>> owned(static_cast<std::size_t>(gpus));
    for (int stage = 0; stage < layout.pipeline; ++stage)
        for (int replica = 0; replica < layout.data; ++replica)
            for (int context = 0; context < layout.context; ++context)
                for (int tensor = 0; tensor < layout.tensor; ++tensor) {
                    auto& of_gpu = owned[static_cast<std::size_t>(
                        plan.gpu_of_rank[static_cast<std::size_t>(plan.rank(tensor, context, replica, stage))])];
                    for (const HeldBlock& block : blocks_on(job, plan, replica, stage)) {
                        const std::int64_t held = block.split ? block.elements / layout.tensor : block.elements;
                        const std::int64_t first = block.split ? held * tensor : 0;
                        const std::int64_t shard = (held + shards - 1) / shards;
                        for (std::int64_t i = 0; i < held; ++i) {
                            of_gpu.insert({block.kind, block.layer, StateKind::kWeights, first + i});
                            if (!layout.distributed_optimizer ||
                                i / shard == std::int64_t{replica} * layout.context + context)
                                of_gpu.insert({block.kind, block.layer, StateKind::kOptimizer, first + i});
                        }
                    }
                }
    return owned;
}

}  // namespace headway::scenarios::transfer_test
