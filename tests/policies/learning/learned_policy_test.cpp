#include "policies/learning/learned_policy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "policies/learning/normaliser.h"
#include "scenarios/language/config_error.h"
#include "tests/policies/learning/small_decision.h"

namespace headway::policies {
namespace {

TrainedPolicy untrained_policy() {
    TrainedPolicy policy;
    policy.shape = default_shape();
    scenarios::RandomStream stream(1, "test.untrained");
    policy.parameters = Network::initial_parameters(policy.shape, stream);
    policy.global_normaliser = empty_normaliser(global_features().size());
    policy.candidate_normaliser = empty_normaliser(candidate_features().size());
    return policy;
}

TEST(LearnedPolicy, BeforeTrainingTakesWhatPaysWithinTheFirstHorizon) {
    SmallDecision decision;
    LearnedPolicy policy(untrained_policy());
    policy.start_episode(decision.facts, 1);
    EXPECT_EQ(policy.decide(decision.observation, decision.candidates).candidate, 1u);
    decision.candidates[1].predicted.pause = Duration::seconds(2000);  // 20 intervals
    decision.candidates[2].predicted.pause = Duration::seconds(2000);
    policy.start_episode(decision.facts, 1);
    EXPECT_EQ(policy.decide(decision.observation, decision.candidates).candidate, 0u);
    EXPECT_EQ(policy.scores().size(), 3u);
    EXPECT_NEAR(policy.horizon(), Network::kHorizon, 0.2 * Network::kHorizon);
}

TEST(LearnedPolicy, TakesTheSameCandidateWhereverItStands) {
    SmallDecision decision;
    LearnedPolicy policy(untrained_policy());
    policy.start_episode(decision.facts, 1);
    const auto straight = policy.decide(decision.observation, decision.candidates).candidate;
    const std::vector<double> scores(policy.scores().begin(), policy.scores().end());
    std::swap(decision.candidates[1], decision.candidates[2]);
    policy.start_episode(decision.facts, 1);
    const auto turned = policy.decide(decision.observation, decision.candidates).candidate;
    EXPECT_EQ(straight, 1u);
    EXPECT_EQ(turned, 2u);
    EXPECT_NEAR(scores[1], policy.scores()[2], 1e-12);
    EXPECT_NEAR(scores[2], policy.scores()[1], 1e-12);
}

TEST(LearnedPolicy, RefusesANetworkOfOtherFeatures) {
    TrainedPolicy policy = untrained_policy();
    policy.shape.global_features = 3;
    scenarios::RandomStream stream(1, "test.untrained");
    policy.parameters = Network::initial_parameters(policy.shape, stream);
    policy.global_normaliser = empty_normaliser(3);
    EXPECT_THROW(LearnedPolicy{policy}, scenarios::ConfigError);
}

TEST(Novelty, IsNothingInsideTheRangesAndGrowsOutside) {
    const std::vector<FeatureRange> ranges = {{-1.0, 1.0}, {0.0, 0.1}, {2.0, 4.0}};
    const auto novelty = [&](float a, float b, float c) { return raw_novelty(ranges, std::vector<float>{a, b, c}); };
    EXPECT_EQ(novelty(0.9f, 0.05f, 2.5f), 0.0);
    EXPECT_NEAR(novelty(2.0f, 0.05f, 2.5f), std::sqrt(1.0 / 3.0), 1e-6);
    EXPECT_NEAR(novelty(0.0f, 0.35f, 3.0f), std::sqrt(1.0 / 3.0), 1e-6) << "narrow ranges count as 0.5 wide";
    EXPECT_LT(novelty(0.0f, 0.0f, 4.5f), novelty(0.0f, 0.0f, 5.5f));
    EXPECT_NEAR(novelty(1000.0f, 0.0f, 3.0f), 5.0 / std::sqrt(3.0), 1e-6) << "one wild feature counts 5 at most";
}

TEST(Novelty, OfAPolicyIsOneAtItsLimit) {
    SmallDecision decision;
    TrainedPolicy trained = untrained_policy();
    FeatureBuilder builder;
    builder.start_episode(decision.facts);
    const Features features = builder.build(decision.observation, decision.candidates);
    for (const float value : features.global) trained.global_ranges.push_back({value - 0.5, value + 0.5});
    LearnedPolicy policy(trained);
    policy.start_episode(decision.facts, 1);
    policy.decide(decision.observation, decision.candidates);
    EXPECT_EQ(policy.novelty(), 0.0);

    for (RankObservation& rank : decision.observation.ranks) {  // a furnace
        rank.measured.temperature_c = 300.0;
        rank.measured.sm_clock_mhz = 9000.0;
        rank.relative_score = 0.01;
    }
    policy.start_episode(decision.facts, 1);
    policy.decide(decision.observation, decision.candidates);
    EXPECT_GT(policy.novelty(), 1.0);
    trained.novelty_limit = 1000.0;
    EXPECT_LT(novelty_of(trained, features.global), 1e-9);
}

}  // namespace
}  // namespace headway::policies
