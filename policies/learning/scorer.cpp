#include "policies/learning/scorer.h"

#include <cmath>
#include <stdexcept>

#include "policies/learning/normaliser.h"

namespace headway::policies {

Scorer::Scorer(const TrainedPolicy& trained) : trained_(trained), network_(trained.shape) {
    network_.set_parameters(trained_.parameters);
    if (trained_.global_normaliser.mean.size() != static_cast<std::size_t>(trained_.shape.global_features) ||
        trained_.candidate_normaliser.mean.size() != static_cast<std::size_t>(trained_.shape.candidate_features)) {
        throw std::invalid_argument("scorer: normalisers of another shape than the network");
    }
}

void Scorer::score(const Features& features, std::span<const std::uint8_t> allowed) {
    input_.clear();
    append_decision(trained_, features, input_);
    network_.forward(input_, outputs_);
    log_probabilities_.resize(outputs_.logits.size());
    log_softmax(outputs_.logits, allowed, log_probabilities_);
}

std::size_t Scorer::best() const {
    std::size_t best = 0;
    for (std::size_t i = 1; i < log_probabilities_.size(); ++i) {
        if (log_probabilities_[i] > log_probabilities_[best]) best = i;
    }
    return best;
}

}  // namespace headway::policies
