#include "backend/launch/local_launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace headway::backend {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

struct Launched {
    LaunchResult result;
    std::vector<std::string> lines;
};

Launched launch(int ranks, const std::string& script, std::chrono::milliseconds grace = std::chrono::seconds(20)) {
    Launched launched;
    LocalLaunch what;
    what.arguments = {"/bin/sh", "-c", script};
    what.ranks = ranks;
    what.grace = grace;
    what.tell = [&](const std::string& line) { launched.lines.push_back(line); };
    launched.result = run_local_ranks(what);
    return launched;
}

std::filesystem::path scratch_file(const std::string& name) {
    return std::filesystem::temp_directory_path() / ("launch-test-" + std::to_string(::getpid()) + "-" + name);
}

TEST(LocalLaunch, TellsEachRankWhoItIsAndCollectsWhatItSays) {
    const Launched launched = launch(3, "[ \"$HEADWAY_RANK\" = 0 ] || printf \"of $HEADWAY_SIZE\\nlast\" >&2");
    EXPECT_THAT(launched.lines, UnorderedElementsAre("rank 1: of 3", "rank 1: last", "rank 2: of 3", "rank 2: last"));
    EXPECT_EQ(launched.result.exit_code(), 0);
    EXPECT_EQ(launched.result.first_failed, -1);
}

TEST(LocalLaunch, HandsRankZeroASocketThatListensAtThePoint) {
    // The other end of descriptor HEADWAY_LISTENER is in the kernel's table of listening sockets, with the port.
    const Launched launched =
        launch(2,
               "port=${HEADWAY_RENDEZVOUS#127.0.0.1:}; hex=$(printf %04X \"$port\");"
               "if [ \"$HEADWAY_RANK\" = 1 ]; then [ -z \"$HEADWAY_LISTENER\" ] || exit 4; exit 0; fi;"
               "inode=$(readlink /proc/self/fd/$HEADWAY_LISTENER); inode=${inode#socket:[}; inode=${inode%]};"
               "grep -q \"0100007F:$hex .* 0A .*$inode\" /proc/net/tcp");
    EXPECT_EQ(launched.result.exit_code(), 0);
}

TEST(LocalLaunch, ReturnsTheExitCodeOfTheFirstRankThatFailed) {
    const Launched launched = launch(3, "[ \"$HEADWAY_RANK\" = 2 ] && exit 7; sleep 0.2; exit 0");
    EXPECT_EQ(launched.result.first_failed, 2);
    EXPECT_EQ(launched.result.exit_code(), 7);
    EXPECT_THAT(launched.lines, Contains("rank 2 ended with exit code 7"));
    EXPECT_EQ(launch(2, "[ \"$HEADWAY_RANK\" = 1 ] && exit 7; sleep 0.2; exit 2").result.exit_code(), 2);
}

TEST(LocalLaunch, SaysWhichRankWasKilledBySignal) {
    const Launched launched = launch(2, "[ \"$HEADWAY_RANK\" = 1 ] && kill -9 $$; sleep 0.2; exit 0");
    EXPECT_THAT(launched.lines, Contains("rank 1 was ended by signal 9 (Killed)"));
    EXPECT_EQ(launched.result.ends[1].signal, SIGKILL);
    EXPECT_EQ(launched.result.exit_code(), 1);
}

TEST(LocalLaunch, KillsWhoeverStaysAfterAFailure) {
    const auto begin = std::chrono::steady_clock::now();
    const Launched launched =
        launch(3, "[ \"$HEADWAY_RANK\" = 0 ] && exit 1; exec sleep 60", std::chrono::milliseconds(200));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
    EXPECT_EQ(launched.result.ends[1].signal, SIGKILL);
    EXPECT_EQ(launched.result.ends[2].signal, SIGKILL);
    EXPECT_THAT(launched.lines, UnorderedElementsAre("rank 1 did not end and is killed",
                                                     "rank 2 did not end and is killed"));  // rank 0 has its own words
    EXPECT_EQ(launched.result.exit_code(), 1);
}

TEST(LocalLaunch, SaysThatThereIsNoSuchProgram) {
    LocalLaunch what;
    what.arguments = {"/no/such/program"};
    what.ranks = 2;
    std::vector<std::string> lines;
    what.tell = [&](const std::string& line) { lines.push_back(line); };
    EXPECT_EQ(run_local_ranks(what).exit_code(), 127);
    EXPECT_THAT(lines, Contains("rank 1: /no/such/program: No such file or directory"));
    what.ranks = 0;
    EXPECT_THROW(run_local_ranks(what), std::invalid_argument);
}

TEST(LocalLaunch, PassesRequestsToEndOnAndReturnsWhatTheRanksMakeOfThem) {
    for (const int signal : {SIGINT, SIGTERM}) {
        const auto ready = scratch_file("ready");
        const pid_t launcher = ::fork();
        if (launcher == 0) {
            const Launched launched = launch(2, "trap 'exit 130' INT TERM; : > '" + ready.string() +
                                                    "'$HEADWAY_RANK; while true; do sleep 0.02; done");
            const bool well = launched.result.asked_to_end == signal && launched.result.exit_code() == 130;
            ::_exit(well ? 130 : 1);
        }
        for (int tries = 0; tries < 500; ++tries) {
            if (std::filesystem::exists(ready.string() + "0") && std::filesystem::exists(ready.string() + "1")) break;
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        ::kill(launcher, signal);
        int status = 0;
        ::waitpid(launcher, &status, 0);
        EXPECT_EQ(WEXITSTATUS(status), 130) << signal;
        for (const char* const rank : {"0", "1"}) std::filesystem::remove(ready.string() + rank);
    }
}

TEST(LocalLaunch, HoldsRequestsToEndUntilTheRanksLetThemIn) {
    LocalLaunch what;
    what.arguments = {"/bin/sh", "-c", "kill -TERM $$; kill -INT $$; exit 7"};
    what.ranks = 1;
    EXPECT_NE(run_local_ranks(what).ends.front().signal, 0);
    what.hold_requests = true;
    const RankEnd end = run_local_ranks(what).ends.front();
    EXPECT_EQ(end.signal, 0);
    EXPECT_EQ(end.exit_code, 7);
}

TEST(LocalLaunch, LeavesNobodyBehindWhenItIsKilled) {
    const auto told = scratch_file("ranks");
    const pid_t launcher = ::fork();
    if (launcher == 0) {
        launch(3, "echo $$ >> '" + told.string() + "'; exec sleep 300");
        ::_exit(0);
    }
    std::vector<pid_t> ranks;
    for (int tries = 0; tries < 500 && ranks.size() < 3; ++tries) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        ranks.clear();
        std::ifstream file(told);
        for (pid_t process = 0; file >> process;) ranks.push_back(process);
    }
    ASSERT_EQ(ranks.size(), 3u);
    ::kill(launcher, SIGKILL);
    ::waitpid(launcher, nullptr, 0);
    const auto still_runs = [](pid_t process) {  // whoever inherits them may be slow to bury them
        std::ifstream file("/proc/" + std::to_string(process) + "/stat");
        std::string text;
        std::getline(file, text);
        const std::size_t name_end = text.rfind(')');
        return name_end != std::string::npos && text[name_end + 2] != 'Z';
    };
    for (const pid_t rank : ranks) {
        for (int tries = 0; tries < 300 && still_runs(rank); ++tries)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        EXPECT_FALSE(still_runs(rank)) << rank;
    }
    std::filesystem::remove(told);
}

}  // namespace
}  // namespace headway::backend
