#pragma once

#include <span>

#include "policies/learning/trained_policy.h"

namespace headway::policies {

/// A policy that can tell how far what it was shown is from what it was trained on. Whoever guards a policy asks for
/// this interface (dynamic_cast) and hands over to a rule where `novelty()` is above 1.
class NoveltySource {
  public:
    virtual ~NoveltySource() = default;
    /// Of the last `decide`: 0 inside the range of training, 1 at the limit of what counts as known.
    virtual double novelty() const = 0;
};

/// Root mean square over the features of how far each lies outside its range, in halves of that range (ranges narrower
/// than 0.5 count as 0.5), at most 5 for one feature. 0 where no range is known.
double raw_novelty(std::span<const FeatureRange> ranges, std::span<const float> features);

/// The same over the limit that the policy's training gave, at least 0.15.
double novelty_of(const TrainedPolicy& policy, std::span<const float> global);

}  // namespace headway::policies
