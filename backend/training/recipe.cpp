#include "backend/training/recipe.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace headway::backend {

double learning_rate(const scenarios::Training& training, std::int64_t step) {
    const std::int64_t warmup = training.warmup_iterations, decay = training.decay_iterations;
    if (step < warmup) return training.learning_rate * static_cast<double>(step + 1) / static_cast<double>(warmup);
    if (decay <= 0) return training.learning_rate;
    if (step >= decay) return training.final_learning_rate;
    const double progress = static_cast<double>(step - warmup) / static_cast<double>(decay - warmup);
    return training.final_learning_rate + 0.5 * (1.0 + std::cos(std::numbers::pi * progress)) *
                                              (training.learning_rate - training.final_learning_rate);
}

double clipping_scale(double clip, double norm) {
    return clip > 0.0 && norm > clip ? clip / norm : 1.0;
}

std::vector<DecayRun> decay_runs(const scenarios::Model& model, scenarios::BlockKind kind,
                                 const scenarios::Interval& elements) {
    using scenarios::BlockKind;
    if (elements.empty()) return {};
    if (kind != BlockKind::kLayerSplit)
        return {{elements, kind == BlockKind::kEmbedding || kind == BlockKind::kPositions || kind == BlockKind::kHead}};
    const std::vector<scenarios::SplitTensor> tensors = scenarios::split_tensors(model);
    std::int64_t unit = 0;
    for (const scenarios::SplitTensor& tensor : tensors) unit += tensor.rows_of_unit * tensor.row;
    std::vector<DecayRun> runs;
    for (std::int64_t begin = elements.begin / unit * unit; begin < elements.end; begin += unit) {
        std::int64_t at = begin;
        for (const scenarios::SplitTensor& tensor : tensors) {
            const std::int64_t end = at + tensor.rows_of_unit * tensor.row;
            const scenarios::Interval part{std::max(at, elements.begin), std::min(end, elements.end)};
            at = end;
            if (part.empty()) continue;
            const bool decayed = tensor.row > 1;
            if (!runs.empty() && runs.back().decayed == decayed)
                runs.back().elements.end = part.end;
            else
                runs.push_back({part, decayed});
        }
    }
    return runs;
}

}  // namespace headway::backend
