#include "tests/backend/local_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

namespace headway::backend {
namespace {

TEST(LocalRanks, TellTheTestWhatFailedInThem) {
    const auto outcomes = rank_outcomes(3, [](LocalRank& local) -> std::string {
        if (local.rank == 1) throw std::runtime_error("one failed");
        EXPECT_NE(local.rank, 2);
        return "rank " + std::to_string(local.rank);
    });
    ASSERT_EQ(outcomes.size(), 3u);
    EXPECT_TRUE(outcomes[0].finished());
    EXPECT_EQ(outcomes[0].result, "rank 0");
    EXPECT_EQ(outcomes[1].error, "one failed");
    ASSERT_EQ(outcomes[2].failures.size(), 1u);
    EXPECT_THAT(outcomes[2].failures[0], ::testing::HasSubstr("local.rank"));
}

TEST(LocalRanks, AreKilledAtTheLimit) {
    LocalRanksOptions options;
    options.limit = std::chrono::milliseconds(300);
    const auto outcomes = rank_outcomes(
        2,
        [](LocalRank& local) -> std::string {
            while (local.rank == 1) ::pause();
            return "done";
        },
        options);
    EXPECT_EQ(outcomes[0].result, "done");
    EXPECT_EQ(outcomes[1].signal, SIGKILL);
    EXPECT_FALSE(outcomes[1].finished());
}

TEST(LocalRanks, TalkToEachOther) {
    const auto results = run_ranks(3, [](LocalRank& local) {
        const std::string mine = "I am " + std::to_string(local.rank);
        const auto all = local.control.all_gather({mine.begin(), mine.end()});
        return std::string(all[2].begin(), all[2].end());
    });
    EXPECT_THAT(results, ::testing::Each("I am 2"));
}

}  // namespace
}  // namespace headway::backend
