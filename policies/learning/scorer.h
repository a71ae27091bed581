#pragma once

#include <span>
#include <vector>

#include "policies/learning/features.h"
#include "policies/learning/network.h"
#include "policies/learning/trained_policy.h"

namespace headway::policies {

/// Applies normaliser and network to the features of one decision.
class Scorer {
  public:
    /// Throws std::invalid_argument where shape, parameters and normalisers do not belong together.
    explicit Scorer(const TrainedPolicy& trained);

    /// Scores the decision; the accessors below tell of it until the next call.
    void score(const Features& features, std::span<const std::uint8_t> allowed = {});
    std::span<const double> logits() const { return outputs_.logits; }
    std::span<const double> log_probabilities() const { return log_probabilities_; }  ///< forbidden: -infinity
    double value() const { return outputs_.values[0]; }
    double horizon() const { return outputs_.horizons[0]; }
    std::size_t best() const;  ///< the first of the best allowed ones
    const TrainedPolicy& trained() const { return trained_; }

  private:
    TrainedPolicy trained_;
    Network network_;
    NetworkInput input_;
    NetworkOutput outputs_;
    std::vector<double> log_probabilities_;
};

}  // namespace headway::policies
