#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scenarios/language/job.h"
#include "scenarios/transfer/ownership.h"

/// Who writes what of a checkpoint.
namespace headway::backend {

struct BlockPart {
    scenarios::Block block;
    scenarios::Interval elements;
    bool operator==(const BlockPart&) const = default;
};

/// `owned` [processes]: what each holds; `order`: the processes that come first. Returns [processes]: each element that
/// somebody holds once, with the first in `order` that holds it; without padding rows. Throws std::invalid_argument
/// when elements of the model are with nobody.
std::vector<std::vector<BlockPart>> write_shares(const scenarios::Model& model,
                                                 std::span<const std::vector<BlockPart>> owned,
                                                 std::span<const int> order);

/// Parts of `whole` that are in none of `covered`, which are disjoint and in order.
std::vector<scenarios::Interval> uncovered(const scenarios::Interval& whole,
                                           const std::vector<scenarios::Interval>& covered);

}  // namespace headway::backend
