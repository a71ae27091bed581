#pragma once

#include <functional>
#include <optional>
#include <vector>

namespace headway::policies {

/// What a split of the model over the stages of a pipeline has to keep to.
struct SplitLimits {
    int layers = 1;         ///< of the model
    int least = 1;          ///< layers of each stage
    std::vector<int> most;  ///< [stages] that fit in memory; empty: any number
};

/// How long a stage with that many layers works on one micro-batch, forward and backward, embedding and logits where
/// they are: at least 0, does not fall when the number grows.
using StageTime = std::function<double(int stage, int layers)>;

/// Layers of each stage for which (micro_batches - 1) x slowest stage + sum of all stages is least: what a pipeline
/// takes for its micro-batches (Narayanan et al. 2021, section 2.2, for uneven stages). Exact: for every time of the
/// slowest stage that could be best, a dynamic programme over the stages finds the least sum. Nothing when the limits
/// allow no split. Where several are best, the earlier stages get more.
std::optional<std::vector<int>> split_layers(int stages, int micro_batches, const SplitLimits& limits,
                                             const StageTime& time);

}  // namespace headway::policies
