#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "policies/episode.h"
#include "policies/learning/novelty.h"
#include "policies/learning/ppo.h"
#include "policies/learning/trained_policy.h"
#include "policies/policy.h"

namespace headway::policies {

struct OnlineOptions {
    int decisions_per_update = 32;
    double learning_rate = 2e-4;
    double step_kl = 0.005;  ///< most that one update may move the policy: it is taken back in part or whole otherwise
    double total_kl = 0.05;  ///< most that the policy may be from the one it started with, over the latest decisions
    double explore = 0.0;    ///< share of decisions drawn from the policy's own distribution; 0: always its best
    PpoOptions ppo;
};

/// A trained policy that goes on learning from the outcomes of the job it runs (`--learn`). Bounded: no update moves it
/// further than the limits; reversible: the policy it began with is kept.
class OnlineLearner final : public Policy, public NoveltySource, public EpisodeSink {
  public:
    explicit OnlineLearner(const TrainedPolicy& trained, const OnlineOptions& options = {});
    ~OnlineLearner() override;

    std::string_view name() const override;
    void start_episode(const ClusterFacts& facts, std::uint64_t seed) override;
    Action decide(const Observation& observation, const std::vector<Candidate>& candidates) override;
    /// To be told, by whoever runs the episode, what was decided (guards may have overruled) and what became of it.
    bool decided(const Decision& decision) override;
    void earned(const Interval& interval) override;

    const TrainedPolicy& policy() const;    ///< as it is now
    const TrainedPolicy& original() const;  ///< as it began
    void revert();                          ///< back to the original
    double novelty() const override { return novelty_; }
    int updates() const;      ///< made and kept
    int refused() const;      ///< taken back for the limits' sake
    double distance() const;  ///< mean divergence from the original over the latest decisions

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
    double novelty_ = 0.0;
};

}  // namespace headway::policies
