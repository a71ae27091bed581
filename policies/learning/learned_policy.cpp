#include "policies/learning/learned_policy.h"

#include <stdexcept>
#include <utility>

#include "scenarios/language/config_error.h"

namespace headway::policies {

namespace {

Scorer scorer_for(const TrainedPolicy& trained, const std::string& name) {
    if (trained.shape.global_features != static_cast<int>(global_features().size()) ||
        trained.shape.candidate_features != static_cast<int>(candidate_features().size())) {
        throw scenarios::ConfigError(name + ": made for " + std::to_string(trained.shape.global_features) + " and " +
                                     std::to_string(trained.shape.candidate_features) + " features, this program has " +
                                     std::to_string(global_features().size()) + " and " +
                                     std::to_string(candidate_features().size()));
    }
    return Scorer(trained);
}

}  // namespace

LearnedPolicy::LearnedPolicy(const TrainedPolicy& trained, std::string name)
    : name_(std::move(name)), scorer_(scorer_for(trained, name_)) {}

LearnedPolicy::~LearnedPolicy() = default;

void LearnedPolicy::start_episode(const ClusterFacts& facts, std::uint64_t /*seed*/) {
    features_.start_episode(facts);
    novelty_ = 0.0;
}

Action LearnedPolicy::decide(const Observation& observation, const std::vector<Candidate>& candidates) {
    const Features& features = features_.build(observation, candidates);
    scorer_.score(features);
    novelty_ = novelty_of(scorer_.trained(), features.global);
    return {scorer_.best()};
}

double LearnedPolicy::horizon() const {
    return scorer_.horizon();
}

std::span<const double> LearnedPolicy::scores() const {
    return scorer_.logits();
}

}  // namespace headway::policies
