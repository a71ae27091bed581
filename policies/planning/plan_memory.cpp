#include "policies/planning/plan_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace headway::policies {

namespace {

using scenarios::Bytes;
using scenarios::Plan;

bool same_cells(const Plan& plan, int a, int b) {
    const auto length = static_cast<std::ptrdiff_t>(plan.layout.virtual_stages());
    const auto first = plan.layers_of_cell.begin();
    return plan.micro_batches_of_replica[static_cast<std::size_t>(a)] ==
               plan.micro_batches_of_replica[static_cast<std::size_t>(b)] &&
           std::equal(first + a * length, first + (a + 1) * length, first + b * length);
}

}  // namespace

int micro_batches_in_flight(const scenarios::Layout& layout, int micro_batches) {
    // Everything but GPipe alternates forwards and backwards at the latest when twice as many micro-batches as stages
    // are in flight.
    if (layout.schedule == scenarios::Schedule::kGPipe) return micro_batches;
    return std::min(micro_batches, 4 * layout.pipeline);
}

PlanMemory::PlanMemory(const scenarios::Job& job, const scenarios::Layout& layout,
                       const std::vector<Bytes>& memory_of_gpu)
    : layout_(layout), memory_of_gpu_(memory_of_gpu), table_(job, layout) {}

Bytes PlanMemory::needed(const Plan& plan, int replica, int stage) {
    std::vector<int> layers;
    for (int chunk = 0; chunk < layout_.virtual_pipeline; ++chunk)
        layers.push_back(plan.layers(replica, chunk * layout_.pipeline + stage));
    const int micro_batches = plan.micro_batches_of_replica[static_cast<std::size_t>(replica)];
    return table_.worker(stage, layers, micro_batches_in_flight(layout_, micro_batches)).total();
}

PlanMemory::Fullest PlanMemory::fullest(const Plan& plan) {
    Fullest fullest;
    std::vector<Bytes> of_stage(static_cast<std::size_t>(layout_.pipeline));
    for (int replica = 0; replica < layout_.data; ++replica) {
        const bool as_before = replica > 0 && same_cells(plan, replica - 1, replica);
        for (int stage = 0; stage < layout_.pipeline; ++stage) {
            Bytes& bytes = of_stage[static_cast<std::size_t>(stage)];
            if (!as_before) bytes = needed(plan, replica, stage);
            for (int member = 0; member < layout_.ranks_per_worker(); ++member) {
                const int gpu = plan.gpu_of_worker(replica, stage, member);
                const Bytes available = memory_of_gpu_[static_cast<std::size_t>(gpu)];
                const double share = static_cast<double>(bytes.count()) / static_cast<double>(available.count());
                if (share > fullest.share) fullest = {stage, gpu, bytes, available, share};
            }
        }
    }
    return fullest;
}

int PlanMemory::most_layers(const Plan& plan, int most_micro_batches, int replica, int stage) {
    const int micro_batches = micro_batches_in_flight(layout_, most_micro_batches);
    if (probed_ != micro_batches) {
        one_.assign(static_cast<std::size_t>(layout_.pipeline), Bytes());
        two_ = one_;
        probed_ = micro_batches;
    }
    const auto place = static_cast<std::size_t>(stage);
    if (one_[place] == Bytes()) {
        const auto chunks = static_cast<std::size_t>(layout_.virtual_pipeline);
        one_[place] = table_.worker(stage, std::vector<int>(chunks, 1), micro_batches).total();
        two_[place] = table_.worker(stage, std::vector<int>(chunks, 2), micro_batches).total();
    }
    Bytes smallest = memory_of_gpu_[static_cast<std::size_t>(plan.gpu_of_worker(replica, stage, 0))];
    for (int member = 1; member < layout_.ranks_per_worker(); ++member)
        smallest =
            std::min(smallest, memory_of_gpu_[static_cast<std::size_t>(plan.gpu_of_worker(replica, stage, member))]);
    if (smallest < one_[place]) return 0;
    // Memory is linear in the layers.
    const std::int64_t layer =
        std::max<std::int64_t>(1, (two_[place] - one_[place]).count() / layout_.virtual_pipeline);
    const std::int64_t further = (smallest - one_[place]).count() / layer;
    return layout_.virtual_pipeline + static_cast<int>(std::min<std::int64_t>(further, 1'000'000));
}

}  // namespace headway::policies
