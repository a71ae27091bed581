#pragma once

#include <memory>
#include <string>

#include "policies/learning/features.h"
#include "policies/learning/novelty.h"
#include "policies/learning/scorer.h"
#include "policies/policy.h"

namespace headway::policies {

/// Takes the candidate that a trained network scores best; the first of several equal ones.
class LearnedPolicy final : public Policy, public NoveltySource {
  public:
    /// Throws scenarios::ConfigError where `trained` does not fit this build's features.
    explicit LearnedPolicy(const TrainedPolicy& trained, std::string name = "learned");
    ~LearnedPolicy() override;

    std::string_view name() const override { return name_; }
    void start_episode(const ClusterFacts& facts, std::uint64_t seed) override;
    Action decide(const Observation& observation, const std::vector<Candidate>& candidates) override;
    double novelty() const override { return novelty_; }
    /// Of the last `decide`: how many decision intervals the network expects the present conditions to last.
    double horizon() const;
    /// Of the last `decide`: the logit of each candidate.
    std::span<const double> scores() const;

  private:
    std::string name_;
    FeatureBuilder features_;
    Scorer scorer_;
    double novelty_ = 0.0;
};

}  // namespace headway::policies
