#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "scenarios/language/plan.h"
#include "scenarios/language/random.h"

/// Small functions that the features are made of. All are total: what was not measured gives a neutral value.
namespace headway::policies {

/// log(a / b) within -4..4; 0 where one of them is not positive.
inline double log_ratio(double a, double b) {
    if (!(a > 1e-300) || !(b > 1e-300)) return 0.0;
    return std::clamp(scenarios::portable_log(a / b), -4.0, 4.0);
}

/// a / b, or `otherwise` where b is not positive.
inline double share(double a, double b, double otherwise = 0.0) {
    return b > 0.0 ? a / b : otherwise;
}

/// log(1 + |x|) with the sign of x.
inline double signed_log(double x) {
    const double magnitude = scenarios::portable_log(1.0 + std::min(std::abs(x), 1e12));
    return x < 0.0 ? -magnitude : magnitude;
}

/// Of values in any order, which it reorders; 0 for none.
inline double quantile_of(std::vector<double>& values, double at) {
    if (values.empty()) return 0.0;
    const auto index = static_cast<std::ptrdiff_t>(at * static_cast<double>(values.size() - 1) + 0.5);
    std::nth_element(values.begin(), values.begin() + index, values.end());
    return values[static_cast<std::size_t>(index)];
}

/// Largest over mean, less 1; 0 for none or zero.
inline double imbalance(const int* values, std::size_t count) {
    double sum = 0.0;
    int most = 0;
    for (std::size_t i = 0; i < count; ++i) {
        sum += values[i];
        most = std::max(most, values[i]);
    }
    return sum > 0.0 ? most * static_cast<double>(count) / sum - 1.0 : 0.0;
}

/// Half the sum of differences over the sum: which share of the work has another owner. 1 where sizes differ.
inline double moved_share(const std::vector<int>& from, const std::vector<int>& to) {
    if (from.size() != to.size()) return 1.0;
    std::int64_t moved = 0;
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
        moved += std::abs(from[i] - to[i]);
        sum += from[i];
    }
    return sum > 0 ? 0.5 * static_cast<double>(moved) / static_cast<double>(sum) : 0.0;
}

/// FNV-1a over everything in the plan, whole words at a time.
inline std::uint64_t plan_hash(const scenarios::Plan& plan) {
    std::uint64_t hash = 0xcbf29ce484222325ULL;
    const auto take = [&](int value) {
        hash = (hash ^ static_cast<std::uint32_t>(value)) * 0x100000001b3ULL;
        hash ^= hash >> 32;
    };
    const scenarios::Layout& layout = plan.layout;
    for (const int value :
         {layout.tensor, layout.pipeline, layout.data, layout.context, layout.virtual_pipeline,
          layout.zero_bubble_memory, static_cast<int>(layout.schedule), static_cast<int>(layout.recompute),
          static_cast<int>(layout.sequence_parallel), static_cast<int>(layout.distributed_optimizer)}) {
        take(value);
    }
    for (const auto* values : {&plan.gpu_of_rank, &plan.layers_of_cell, &plan.micro_batches_of_replica}) {
        take(static_cast<int>(values->size()));
        for (const int value : *values) take(value);
    }
    return hash;
}

}  // namespace headway::policies
