#include "policies/rules/schedule.h"

#include <gtest/gtest.h>

#include "tests/policies/rules/offered.h"

namespace headway::policies {
namespace {

const std::vector<Candidate> kOffers = {kept(10.0), shares(9.0, 0.0, 1), shares(9.0, 0.0, 2)};

Schedule two_moves(double first_s, double second_s, bool played) {
    Schedule schedule;
    schedule.moves = {{Duration::seconds(first_s), small_plan(1)}, {Duration::seconds(second_s), small_plan(2)}};
    schedule.played = played;
    return schedule;
}

std::vector<std::size_t> followed(const Schedule& schedule, const std::vector<double>& decisions_s) {
    ScheduleFollower follower(schedule);
    follower.start_episode({}, 1);
    std::vector<std::size_t> chosen;
    for (const double now_s : decisions_s) chosen.push_back(follower.decide(seen_at(now_s), kOffers).candidate);
    return chosen;
}

TEST(ScheduleFollower, DoesWhatItSaysAtTheNearestDecision) {
    EXPECT_EQ(followed(two_moves(24.0, 36.0, false), {10.0, 20.0, 30.0, 40.0}), (std::vector<std::size_t>{0, 1, 0, 2}));
}

TEST(ScheduleFollower, DoesWhatWasPlayedAtItsVeryTimesAfterALongPauseToo) {
    EXPECT_EQ(followed(two_moves(400.0, 410.0, true), {10.0, 390.0, 400.0, 410.0}),
              (std::vector<std::size_t>{0, 0, 1, 2}));
}

TEST(ScheduleFollower, GoesByTheNearestDecisionOnceAPlayedEpisodeTakesAnotherCourse) {
    EXPECT_EQ(followed(two_moves(20.0, 34.0, true), {11.0, 21.0, 31.0, 41.0}), (std::vector<std::size_t>{0, 1, 2, 0}));
}

}  // namespace
}  // namespace headway::policies
