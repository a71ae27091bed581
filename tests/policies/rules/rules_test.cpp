#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "policies/rules/judgement.h"
#include "tests/policies/rules/offered.h"

namespace headway::policies {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Policy> begun(std::string_view name) {
    auto policy = make_policy(name);
    policy->start_episode({}, 1);
    return policy;
}

std::vector<Candidate> lost(double repair_s, double restart_s, double slower_iteration_s) {
    return {offered(Candidate::Kind::kWaitForReplacement, small_plan(), 1.0, repair_s),
            offered(Candidate::Kind::kRestart, small_plan(0, 3), slower_iteration_s, restart_s)};
}

TEST(Judgement, CountsWhatARestartTrainsWhileOthersWait) {
    // 100 s until repaired; restarts after 20 s and trains at half speed for 80 s: 60 s lost.
    const auto candidates = lost(100.0, 20.0, 2.0);
    EXPECT_EQ(predicted_lost_time(candidates[0], candidates[0]), Duration::seconds(100.0));
    EXPECT_EQ(predicted_lost_time(candidates[1], candidates[0]), Duration::seconds(60.0));
    // A restart that takes longer than the repair.
    const auto slow = lost(10.0, 20.0, 2.0);
    EXPECT_EQ(predicted_lost_time(slow[1], slow[0]), Duration::seconds(20.0));
}

TEST(Judgement, ExpectsNothingOfAPlanWithoutPrediction) {
    EXPECT_EQ(predicted_gain(shares(0.0), kept(1.0)), 0.0);
    EXPECT_EQ(predicted_gain(shares(1.0), kept(0.0)), 0.0);
    EXPECT_DOUBLE_EQ(predicted_gain(shares(0.75), kept(1.0)), 0.25);
}

class EveryRule : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryRule, KeepsWhenNothingElseIsOffered) {
    const auto policy = begun(GetParam());
    for (int i = 1; i < 20; ++i) EXPECT_EQ(policy->decide(seen_at(i), {kept(1.0)}).candidate, 0u);
}

TEST_P(EveryRule, KeepsWhereOthersAreNoFaster) {
    const auto policy = begun(GetParam());
    for (int i = 1; i < 20; ++i) {
        EXPECT_EQ(policy->decide(seen_at(100.0 * i), {kept(1.0), shares(0.999), layers(1.2, 1.0)}).candidate, 0u);
    }
}

TEST_P(EveryRule, DoesAllOverAgainInTheNextEpisode) {
    const auto policy = begun(GetParam());
    std::vector<std::size_t> chosen[2];
    for (auto& episode : chosen) {
        policy->start_episode({}, 1);
        for (int i = 1; i < 12; ++i) {
            const double slow = i % 4 == 0 ? 1.0 : 1.5;
            const std::vector<Candidate> candidates = {kept(slow), shares(1.2, 2.0), layers(1.0, 9.0)};
            episode.push_back(policy->decide(seen_at(10.0 * i), candidates).candidate);
        }
    }
    EXPECT_EQ(chosen[0], chosen[1]);
}

INSTANTIATE_TEST_SUITE_P(Simple, EveryRule, ::testing::Values("static", "greedy", "hysteresis", "ski-rental"),
                         [](const auto& rule) {
                             return std::string(rule.param) == "ski-rental" ? "ski_rental" : rule.param;
                         });

TEST(Greedy, TakesTheFastestWhateverItCosts) {
    const auto policy = begun("greedy");
    EXPECT_EQ(policy->decide(seen_at(10), {kept(2.0), shares(1.5), degrees(1.4, 1e6), layers(1.6, 1.0)}).candidate, 2u);
    EXPECT_EQ(policy->decide(seen_at(20), {kept(1.0), shares(1.0)}).candidate, 0u);
}

TEST(Rules, ChooseTheLeastLostTimeAfterALoss) {
    for (const char* name : {"greedy", "hysteresis", "ski-rental"}) {
        const auto policy = begun(name);
        EXPECT_EQ(policy->decide(seen_at(10), lost(14400.0, 200.0, 1.3)).candidate, 1u) << name;
        EXPECT_EQ(policy->decide(seen_at(900), lost(60.0, 200.0, 1.3)).candidate, 0u) << name;
    }
    EXPECT_EQ(begun("static")->decide(seen_at(10), lost(14400.0, 200.0, 1.3)).candidate, 0u);
}

TEST(Hysteresis, WaitsUntilItsPatienceIsOver) {
    const auto policy = begun("hysteresis:threshold=0.1,patience=3,horizon=10min");
    const std::vector<Candidate> slow = {kept(2.0), shares(1.5, 1.0)};
    const std::vector<Candidate> fine = {kept(1.0), shares(0.95, 1.0)};
    EXPECT_EQ(policy->decide(seen_at(1), slow).candidate, 0u);
    EXPECT_EQ(policy->decide(seen_at(2), slow).candidate, 0u);
    EXPECT_EQ(policy->decide(seen_at(3), fine).candidate, 0u) << "the row is broken";
    EXPECT_EQ(policy->decide(seen_at(4), slow).candidate, 0u);
    EXPECT_EQ(policy->decide(seen_at(5), slow).candidate, 0u);
    EXPECT_EQ(policy->decide(seen_at(6), slow).candidate, 1u);
    EXPECT_EQ(policy->decide(seen_at(7), slow).candidate, 0u) << "a switch needs a row of its own";
}

TEST(Hysteresis, SwitchesOnlyWhenThePausePaysBackWithinTheHorizon) {
    // A quarter of the time saved: a minute of pause is paid back in four.
    const std::vector<Candidate> slow = {kept(2.0), shares(1.5, 60.0)};
    EXPECT_EQ(begun("hysteresis:patience=1,horizon=3min")->decide(seen_at(1), slow).candidate, 0u);
    EXPECT_EQ(begun("hysteresis:patience=1,horizon=5min")->decide(seen_at(1), slow).candidate, 1u);
    // The one that nets most, not the fastest.
    const std::vector<Candidate> choice = {kept(2.0), degrees(1.4, 120.0), shares(1.5, 1.0)};
    EXPECT_EQ(begun("hysteresis:patience=1,horizon=5min")->decide(seen_at(1), choice).candidate, 2u);
    EXPECT_EQ(begun("hysteresis:patience=1,horizon=2h")->decide(seen_at(1), choice).candidate, 1u);
}

TEST(SkiRental, TakesCheapMeasuresAtOnce) {
    EXPECT_EQ(begun("ski-rental")->decide(seen_at(1), {kept(2.0), layers(1.0, 60.0), shares(1.8, 2.0)}).candidate, 2u);
}

TEST(SkiRental, EscalatesAtTheBreakEvenMoment) {
    const auto policy = begun("ski-rental");
    // Half of every ten seconds is lost for want of other layers, which cost 12 s, and 0.6 for want of other degrees,
    // which cost a minute.
    const std::vector<Candidate> slow = {kept(2.0), layers(1.0, 12.0), degrees(0.8, 60.0)};
    EXPECT_EQ(policy->decide(seen_at(10), slow).candidate, 0u);  // 5 and 6 s
    EXPECT_EQ(policy->decide(seen_at(20), slow).candidate, 0u);  // 10 and 12 s
    EXPECT_EQ(policy->decide(seen_at(30), slow).candidate, 1u);  // 15 and 18 s
    const std::vector<Candidate> still = {kept(1.0), degrees(0.8, 60.0)};
    double now = 30;
    int more = 0;  // 2 s every ten: 42 s are missing
    do {
        now += 10;
        ++more;
    } while (policy->decide(seen_at(now), still).candidate == 0 && more < 100);
    EXPECT_EQ(more, 21);
}

TEST(SkiRental, ForgetsASlowdownThatEnded) {
    const auto policy = begun("ski-rental");
    const std::vector<Candidate> slow = {kept(2.0), layers(1.0, 12.0)};
    EXPECT_EQ(policy->decide(seen_at(10), slow).candidate, 0u);
    EXPECT_EQ(policy->decide(seen_at(20), slow).candidate, 0u);
    EXPECT_EQ(policy->decide(seen_at(30), {kept(1.0), layers(1.1, 12.0)}).candidate, 0u);
    EXPECT_EQ(policy->decide(seen_at(40), slow).candidate, 0u) << "counts from nothing again";
}

TEST(RuleParameters, SayWhatIsAllowed) {
    const auto message = [](std::string_view name) -> std::string {
        try {
            check_policy(name);
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return "accepted";
    };
    EXPECT_EQ(message("hysteresis:threshold=0.1,patience=4,horizon=90 s"), "accepted");
    EXPECT_THAT(message("hysteresis:patience=0"),
                HasSubstr("'hysteresis': patience=0 is not allowed (a whole number from 1"));
    EXPECT_THAT(message("hysteresis:threshold=much"),
                HasSubstr("threshold=much is not allowed (a number from 0 to 1)"));
    EXPECT_THAT(message("hysteresis:horizon=5"), HasSubstr("horizon=5 is not allowed (a time such as"));
    EXPECT_THAT(message("hysteresis:treshold=0.1"),
                HasSubstr("unknown parameter 'treshold' (did you mean 'threshold'?)"));
    EXPECT_THAT(message("hysteresis:threshold"), HasSubstr("'threshold' is not key=value"));
    EXPECT_THAT(message("hysteresis:patience=1,patience=2"), HasSubstr("'patience' is given twice"));
    EXPECT_THAT(message("greedy:threshold=1"), HasSubstr("unknown parameter 'threshold' (it takes none)"));
}

}  // namespace
}  // namespace headway::policies
