#include "policies/learning/features.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "tests/policies/learning/small_decision.h"

namespace headway::policies {
namespace {

float global_of(const Features& features, std::string_view name) {
    const auto names = global_features();
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (names[i].name == name) return features.global[i];
    }
    throw std::invalid_argument("no feature " + std::string(name));
}

float of_candidate(const Features& features, std::size_t candidate, std::string_view name) {
    const auto names = candidate_features();
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (names[i].name == name) return features.candidates[candidate * names.size() + i];
    }
    throw std::invalid_argument("no feature " + std::string(name));
}

Features built(const SmallDecision& decision) {
    FeatureBuilder builder;
    builder.start_episode(decision.facts);
    return builder.build(decision.observation, decision.candidates);
}

TEST(Features, HaveNamesOfTheirOwn) {
    std::set<std::string_view> names;
    for (const FeatureName& feature : global_features()) EXPECT_TRUE(names.insert(feature.name).second) << feature.name;
    names.clear();
    for (const FeatureName& feature : candidate_features()) {
        EXPECT_TRUE(names.insert(feature.name).second) << feature.name;
    }
    const Features features = built(SmallDecision());
    EXPECT_EQ(features.global.size(), global_features().size());
    EXPECT_EQ(features.candidates.size(), 3 * candidate_features().size());
    EXPECT_EQ(features.count(), 3u);
}

TEST(Features, SayWhatTheirNamesSay) {
    const Features features = built(SmallDecision());
    EXPECT_NEAR(global_of(features, "slowdown"), std::log(1.5), 1e-6);
    EXPECT_NEAR(global_of(features, "relative_min"), 0.6, 1e-6);
    EXPECT_NEAR(global_of(features, "slow_share"), 1.0 / 8.0, 1e-6);
    EXPECT_NEAR(global_of(features, "clock_of_slowest"), 0.6, 1e-6);
    EXPECT_NEAR(global_of(features, "throttle_heat_share"), 1.0 / 8.0, 1e-6);
    EXPECT_EQ(global_of(features, "slowest_throttles_heat"), 1.0f);
    EXPECT_EQ(global_of(features, "slowest_throttles_power"), 0.0f);
    EXPECT_NEAR(global_of(features, "exposed_mean"), 1.0 / 15.0, 1e-6);
    EXPECT_NEAR(global_of(features, "idle_mean"), 3.0 / 15.0, 1e-6);
    EXPECT_NEAR(global_of(features, "memory_max"), 60.0 / 80.0, 1e-6);
    EXPECT_EQ(global_of(features, "nothing_measured"), 0.0f);
    EXPECT_NEAR(global_of(features, "minutes_of_interval"), std::log(100.0 / 60.0), 1e-6);
    EXPECT_EQ(global_of(features, "loss"), 0.0f);
    EXPECT_EQ(global_of(features, "initial_plan"), 1.0f);
    EXPECT_NEAR(global_of(features, "best_gain"), std::log(15.0 / 12.0), 1e-6);

    EXPECT_EQ(of_candidate(features, 1, "share_micro_batches"), 1.0f);
    EXPECT_EQ(of_candidate(features, 1, "keep"), 0.0f);
    EXPECT_NEAR(of_candidate(features, 1, "gain"), 10.0 / 12.0 - 10.0 / 15.0, 1e-6);
    EXPECT_NEAR(features.gain[1], 10.0 / 12.0 - 10.0 / 15.0, 1e-6);
    EXPECT_NEAR(features.cost[1], 10.0 / 12.0 * 2.0 / 100.0, 1e-6);
    EXPECT_EQ(features.gain[0], 0.0f);
    EXPECT_EQ(features.cost[0], 0.0f);
    EXPECT_NEAR(of_candidate(features, 2, "pause_over_restart"), std::log(50.0 / 60.0), 1e-6);
    EXPECT_NEAR(of_candidate(features, 2, "world"), std::log(6.0 / 8.0), 1e-6);
    EXPECT_NEAR(of_candidate(features, 2, "data_change"), std::log(3.0 / 4.0), 1e-6);
    EXPECT_NEAR(of_candidate(features, 2, "slow_gpus_left_out"), 1.0, 1e-6);
    EXPECT_EQ(of_candidate(features, 2, "keeps_slowest_gpu"), 0.0f);
    EXPECT_EQ(of_candidate(features, 1, "keeps_slowest_gpu"), 1.0f);
    EXPECT_NEAR(of_candidate(features, 1, "micro_batches_moved"), 2.0 / 32.0, 1e-6);
    EXPECT_EQ(of_candidate(features, 0, "break_even"), 5.0f) << "keeping never pays";
}

TEST(Features, KnowNoUnitOfTimeButForTheLengthOfAnInterval) {
    // Three decisions, the second after a switch, in seconds and in hours.
    std::vector<Features> seen[2];
    for (const int hours : {0, 1}) {
        const SmallDecision decision(hours ? Duration::seconds(3600) : Duration::seconds(1));
        const Duration unit = hours ? Duration::seconds(3600) : Duration::seconds(1);
        FeatureBuilder builder;
        builder.start_episode(decision.facts);
        Observation observation = decision.observation;
        std::vector<Candidate> candidates = decision.candidates;
        seen[hours].push_back(builder.build(observation, candidates));
        observation.plan = candidates[1].plan;
        observation.iteration = unit * 13;
        observation.now += unit * 132;
        std::swap(candidates[0].plan, candidates[1].plan);
        seen[hours].push_back(builder.build(observation, candidates));
        observation.now += unit * 130;
        seen[hours].push_back(builder.build(observation, candidates));
    }
    const auto names = global_features();
    for (std::size_t decision = 0; decision < 3; ++decision) {
        for (std::size_t i = 0; i < names.size(); ++i) {
            const float difference = seen[1][decision].global[i] - seen[0][decision].global[i];
            if (names[i].name == "minutes_of_interval") {
                EXPECT_GT(difference, 3.0f);
            } else {
                EXPECT_NEAR(difference, 0.0, 1e-5) << names[i].name;
            }
        }
        EXPECT_EQ(seen[0][decision].candidates, seen[1][decision].candidates);
        EXPECT_EQ(seen[0][decision].gain, seen[1][decision].gain);
        EXPECT_EQ(seen[0][decision].cost, seen[1][decision].cost);
    }
}

TEST(Features, OfCandidatesFollowTheirOrder) {
    SmallDecision decision;
    const Features straight = built(decision);
    std::swap(decision.candidates[1], decision.candidates[2]);
    const Features turned = built(decision);
    EXPECT_EQ(straight.global, turned.global);
    const std::size_t width = candidate_features().size();
    for (std::size_t i = 0; i < width; ++i) {
        EXPECT_EQ(straight.candidates[width + i], turned.candidates[2 * width + i]) << candidate_features()[i].name;
        EXPECT_EQ(straight.candidates[2 * width + i], turned.candidates[width + i]) << candidate_features()[i].name;
    }
}

TEST(Features, RememberTheSwitchAndHowItTurnedOut) {
    SmallDecision decision;
    FeatureBuilder builder;
    builder.start_episode(decision.facts);
    builder.build(decision.observation, decision.candidates);
    const scenarios::Plan before = decision.observation.plan;
    decision.observation.plan = decision.candidates[1].plan;
    decision.observation.iteration = Duration::seconds(14);  // predicted: 12
    decision.observation.now = Duration::seconds(300);
    decision.candidates[0].plan = decision.observation.plan;
    decision.candidates[1] = {Candidate::Kind::kReturn, before, decision.candidates[1].predicted, ""};
    const Features after = builder.build(decision.observation, decision.candidates);
    EXPECT_EQ(global_of(after, "just_switched"), 1.0f);
    EXPECT_EQ(global_of(after, "initial_plan"), 0.0f);
    EXPECT_NEAR(global_of(after, "miss_of_plan"), std::log(14.0 / 12.0), 1e-6);
    EXPECT_NEAR(global_of(after, "slowdown_trend"), std::log(14.0 / 15.0), 1e-6);
    EXPECT_EQ(of_candidate(after, 1, "left_lately"), 1.0f);
    EXPECT_EQ(of_candidate(after, 1, "initial_plan"), 1.0f);
    EXPECT_EQ(of_candidate(after, 0, "left_lately"), 0.0f);
    decision.observation.now = Duration::seconds(440);
    const Features later = builder.build(decision.observation, decision.candidates);
    EXPECT_EQ(global_of(later, "just_switched"), 0.0f);
    EXPECT_LT(of_candidate(later, 1, "left_lately"), 1.0f);
    EXPECT_NEAR(global_of(later, "switched_ago"), std::log(2.0), 1e-6);
}

TEST(Features, CountHowLongSomethingHasBeenSo) {
    Spell spell;
    for (const bool so : {true, true, true, false, false, true}) spell.see(so);
    EXPECT_EQ(spell.age(), 1.0);
    EXPECT_EQ(spell.spells(), 1.0);
    EXPECT_EQ(spell.mean_length(), 3.0);
}

TEST(Features, AreFiniteWhereNothingWasMeasured) {
    SmallDecision decision;
    decision.observation.ranks.clear();
    decision.observation.groups.clear();
    decision.observation.iteration = {};
    decision.observation.now = {};
    decision.observation.loss = Loss{{3}, {}};
    const Features features = built(decision);
    for (const float value : features.global) EXPECT_TRUE(std::isfinite(value));
    for (const float value : features.candidates) EXPECT_TRUE(std::isfinite(value));
    EXPECT_EQ(global_of(features, "nothing_measured"), 1.0f);
    EXPECT_EQ(global_of(features, "loss"), 1.0f);

    FeatureBuilder builder;  // no facts at all
    builder.start_episode({});
    const std::vector<Candidate> keep = {{Candidate::Kind::kKeep, {}, {}, "keep"}};
    for (const float value : builder.build({}, keep).global) EXPECT_TRUE(std::isfinite(value));
    EXPECT_THROW(builder.build({}, {}), std::invalid_argument);
}

TEST(Features, StartAfreshWithEveryEpisode) {
    SmallDecision decision;
    FeatureBuilder builder;
    builder.start_episode(decision.facts);
    const Features first = builder.build(decision.observation, decision.candidates);
    builder.build(decision.observation, decision.candidates);
    builder.start_episode(decision.facts);
    EXPECT_EQ(builder.build(decision.observation, decision.candidates).global, first.global);
}

}  // namespace
}  // namespace headway::policies
