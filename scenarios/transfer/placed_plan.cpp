#include <cstddef>

#include "scenarios/transfer/difference.h"

namespace headway::scenarios {

namespace {

bool groups_are_aligned(const LinkMap& map, const Plan& plan) {
    const auto tensor = static_cast<std::size_t>(plan.layout.tensor);
    if (tensor == 1) return true;
    for (std::size_t first = 0; first < plan.gpu_of_rank.size(); first += tensor) {
        const int gpu = plan.gpu_of_rank[first];
        if (map.slot_of(gpu) % plan.layout.tensor != 0) return false;
        if (map.slot_of(gpu) + plan.layout.tensor > map.node(map.node_of(gpu)).gpus) return false;
        for (std::size_t t = 1; t < tensor; ++t)
            if (plan.gpu_of_rank[first + t] != gpu + static_cast<int>(t)) return false;
    }
    return true;
}

}  // namespace

PlacedPlan::PlacedPlan(const Job& job, const LinkMap& map, const Plan& plan)
    : job_(job),
      plan_(plan),
      layers_(job.model.layers),
      uniform_(plan.same_layers_everywhere()),
      aligned_(groups_are_aligned(map, plan)),
      shards_(std::int64_t{plan.layout.data} * plan.layout.context),
      stage_of_layer_(stages_of_layers(job, plan, uniform_)),
      rank_of_gpu_(static_cast<std::size_t>(map.gpus()), -1) {
    for (std::size_t rank = 0; rank < plan.gpu_of_rank.size(); ++rank)
        rank_of_gpu_[static_cast<std::size_t>(plan.gpu_of_rank[rank])] = static_cast<int>(rank);
    for (int kind = 0; kind <= static_cast<int>(BlockKind::kHead); ++kind)
        elements_.push_back(block_elements(job, plan.layout, static_cast<BlockKind>(kind)));
}

}  // namespace headway::scenarios
