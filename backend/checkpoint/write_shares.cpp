#include "backend/checkpoint/write_shares.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>

#include "backend/checkpoint/manifest.h"

namespace headway::backend {

std::vector<scenarios::Interval> uncovered(const scenarios::Interval& whole,
                                           const std::vector<scenarios::Interval>& covered) {
    std::vector<scenarios::Interval> gaps;
    std::int64_t next = whole.begin;
    // The last one that begins before `whole` may reach into it.
    auto it = std::upper_bound(covered.begin(), covered.end(), whole.begin,
                               [](std::int64_t begin, const scenarios::Interval& c) { return begin < c.begin; });
    if (it != covered.begin()) next = std::max(next, std::prev(it)->end);
    for (; it != covered.end() && it->begin < whole.end; ++it) {
        if (it->begin > next) gaps.push_back({next, it->begin});
        next = std::max(next, it->end);
    }
    if (next < whole.end) gaps.push_back({next, whole.end});
    return gaps;
}

std::vector<std::vector<BlockPart>> write_shares(const scenarios::Model& model,
                                                 std::span<const std::vector<BlockPart>> owned,
                                                 std::span<const int> order) {
    // A plan may name GPUs beyond the processes that are left.
    std::vector<int> processes;
    for (const int process : order)
        if (process >= 0 && process < static_cast<int>(owned.size())) processes.push_back(process);
    for (int process = 0; process < static_cast<int>(owned.size()); ++process)
        if (std::find(order.begin(), order.end(), process) == order.end()) processes.push_back(process);

    std::vector<std::vector<BlockPart>> shares(owned.size());
    std::map<std::pair<scenarios::BlockKind, int>, std::vector<scenarios::Interval>> covered_of;
    for (const int process : processes) {
        for (const BlockPart& part : owned[static_cast<std::size_t>(process)]) {
            std::vector<scenarios::Interval>& covered = covered_of[{part.block.kind, part.block.layer}];
            const scenarios::Interval real{part.elements.begin,
                                           std::min(part.elements.end, real_elements(model, part.block.kind))};
            for (const scenarios::Interval& gap : uncovered(real, covered)) {
                shares[static_cast<std::size_t>(process)].push_back({part.block, gap});
                const auto after =
                    std::find_if(covered.begin(), covered.end(), [&](const auto& c) { return c.begin > gap.begin; });
                covered.insert(after, gap);
            }
        }
    }
    for (const scenarios::Block& block : scenarios::blocks_of(model)) {
        const scenarios::Interval whole{0, real_elements(model, block.kind)};
        const auto gaps = uncovered(whole, covered_of[{block.kind, block.layer}]);
        if (!gaps.empty())
            throw std::invalid_argument("checkpoint: elements " + std::to_string(gaps[0].begin) + " to " +
                                        std::to_string(gaps[0].end) + " of " + block_text(block) +
                                        " are with no process");
    }
    return shares;
}

}  // namespace headway::backend
