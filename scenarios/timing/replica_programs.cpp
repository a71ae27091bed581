#include "scenarios/timing/replica_programs.h"

#include "scenarios/language/program.h"

namespace headway::scenarios {

namespace {

constexpr int kGridParts = 4;  ///< a step of the grid is at most this part of the count
constexpr int kExactBelow = 32;

}  // namespace

CompiledReplica& ReplicaPrograms::program(int micro_batches, bool delays) {
    auto found = compiled_.find({micro_batches, delays});
    if (found == compiled_.end())
        found = compiled_.try_emplace({micro_batches, delays}, layout_, micro_batches, delays).first;
    return found->second;
}

void ReplicaPrograms::check(int micro_batches) const {
    if (compiled_.contains({around(micro_batches).first, false})) return;
    compute_order(layout_, 0, micro_batches);
}

std::pair<int, int> ReplicaPrograms::around(int micro_batches) const {
    if (counts_ == Counts::kExact || micro_batches < kExactBelow) return {micro_batches, micro_batches};
    // Interleaving takes multiples of the stages only.
    int step = layout_.schedule == Schedule::kInterleaved ? layout_.pipeline : 1;
    const bool refused = micro_batches % step != 0;
    while (step * 2 * kGridParts <= micro_batches) step *= 2;
    const int below = micro_batches / step * step;
    if (below == micro_batches || refused) return {micro_batches, micro_batches};
    return {below, below + step};
}

}  // namespace headway::scenarios
