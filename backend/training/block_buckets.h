#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"
#include "scenarios/transfer/ownership.h"

namespace headway::backend {

/// Buckets: consecutive blocks of a rank that one collective takes together. All holders of a block have to agree on
/// its bucket, so what decides is the same for all of them.
struct BucketCandidate {
    std::vector<int> virtual_stages;  ///< [replicas] that hold the block
    bool alone = false;               ///< a tied embedding, which first and last stage add up besides
    std::int64_t elements = 0;        ///< that a rank holds
};

/// Virtual stage of a block in each replica; of a tied embedding's copies the first stage's.
std::vector<int> virtual_stages_of(const scenarios::Plan& plan, const scenarios::Block& block);

/// First block of each bucket, in order: neighbours go together while the same virtual stages hold them and the bucket
/// has at most `most_elements` (or is one block).
std::vector<std::size_t> bucket_starts(std::span<const BucketCandidate> blocks, std::int64_t most_elements);

}  // namespace headway::backend
