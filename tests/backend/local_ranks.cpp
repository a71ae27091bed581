#include "tests/backend/local_ranks.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <stdexcept>

#include "backend/communicator/host_control.h"
#include "backend/launch/published_port.h"

namespace headway::backend {

namespace {

using LocalRanksClock = std::chrono::steady_clock;

/// Answers go through a pipe as texts: result, error, then the failures.
void append_text(std::string& answer, const std::string& text) {
    answer += std::to_string(text.size()) + ":" + text;
}

bool take_text(std::string& answer, std::string& text) {
    const std::size_t colon = answer.find(':');
    if (colon == std::string::npos) return false;
    const std::size_t size = std::stoul(answer.substr(0, colon));
    if (answer.size() < colon + 1 + size) return false;
    text = answer.substr(colon + 1, size);
    answer.erase(0, colon + 1 + size);
    return true;
}

[[noreturn]] void be_rank(int rank, int size, const RendezvousPoint& point, int pipe,
                          const std::function<std::string(LocalRank&)>& work, const LocalRanksOptions& options) {
    std::string result, error;
    ::testing::TestPartResultArray caught;
    {
        const ::testing::ScopedFakeTestPartResultReporter reporter(
            ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &caught);
        try {
            HostControl control(point, rank, size, options.timeout);
            HostCommunicatorMaker communicators(control, options.timeout, options.through);
            LocalRank local{rank, size, control, communicators};
            result = work(local);
        } catch (const std::exception& thrown) {
            error = *thrown.what() != '\0' ? thrown.what() : "an error without a message";
        }
    }
    std::string answer;
    append_text(answer, result);
    append_text(answer, error);
    for (int i = 0; i < caught.size(); ++i) {
        const ::testing::TestPartResult& part = caught.GetTestPartResult(i);
        if (!part.failed()) continue;
        append_text(answer, std::string(part.file_name() != nullptr ? part.file_name() : "?") + ":" +
                                std::to_string(part.line_number()) + ": " + part.message());
    }
    std::size_t done = 0;
    while (done < answer.size()) {
        const ssize_t count = ::write(pipe, answer.data() + done, answer.size() - done);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) break;
        done += static_cast<std::size_t>(count);
    }
    std::fflush(nullptr);
    ::_exit(0);  // no destructors of the test's objects
}

struct RankProcess {
    pid_t process = -1;
    int pipe = -1;
    std::string answer;
};

RankProcess start_rank(int rank, int size, const RendezvousPoint& point,
                       const std::function<std::string(LocalRank&)>& work, const LocalRanksOptions& options) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
    std::fflush(nullptr);
    const pid_t process = ::fork();
    if (process < 0) throw std::runtime_error("no process");
    if (process == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::close(ends[0]);
        RendezvousPoint mine = point;
        if (rank != 0) ::close(std::exchange(mine.listener, -1));
        be_rank(rank, size, mine, ends[1], work, options);
    }
    ::close(ends[1]);
    return {process, ends[0], ""};
}

void read_answers(std::vector<RankProcess>& ranks, LocalRanksClock::time_point latest) {
    for (;;) {
        std::vector<pollfd> waiting;
        std::vector<RankProcess*> whose;
        for (RankProcess& rank : ranks) {
            if (rank.pipe < 0) continue;
            waiting.push_back({rank.pipe, POLLIN, 0});
            whose.push_back(&rank);
        }
        if (waiting.empty()) return;
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(latest - LocalRanksClock::now());
        if (left.count() <= 0) {
            for (const RankProcess& rank : ranks) ::kill(rank.process, SIGKILL);
            latest = LocalRanksClock::now() + std::chrono::seconds(10);
            continue;
        }
        if (::poll(waiting.data(), waiting.size(), static_cast<int>(left.count())) <= 0) continue;
        for (std::size_t i = 0; i < waiting.size(); ++i) {
            if (waiting[i].revents == 0) continue;
            char buffer[65536];
            const ssize_t count = ::read(whose[i]->pipe, buffer, sizeof buffer);
            if (count > 0) {
                whose[i]->answer.append(buffer, static_cast<std::size_t>(count));
            } else if (count == 0 || errno != EINTR) {
                ::close(std::exchange(whose[i]->pipe, -1));
            }
        }
    }
}

}  // namespace

RendezvousPoint local_listener() {
    return listen_locally();
}

std::vector<RankOutcome> rank_outcomes(int size, const std::function<std::string(LocalRank&)>& work,
                                       const LocalRanksOptions& options) {
    const RendezvousPoint point = local_listener();
    std::vector<RankProcess> ranks;
    std::vector<int> processes;
    for (int rank = 0; rank < size; ++rank) {
        ranks.push_back(start_rank(rank, size, point, work, options));
        processes.push_back(ranks.back().process);
    }
    ::close(point.listener);
    if (options.meanwhile) options.meanwhile(processes);
    read_answers(ranks, LocalRanksClock::now() + options.limit);
    std::vector<RankOutcome> outcomes;
    for (RankProcess& rank : ranks) {
        RankOutcome& outcome = outcomes.emplace_back();
        int status = 0;
        while (::waitpid(rank.process, &status, 0) < 0 && errno == EINTR) {
        }
        if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
        const bool answered = take_text(rank.answer, outcome.result) && take_text(rank.answer, outcome.error);
        if (!answered && outcome.signal == 0)
            outcome.error = "ended without an answer, exit code " + std::to_string(WEXITSTATUS(status));
        for (std::string failure; take_text(rank.answer, failure);) outcome.failures.push_back(failure);
    }
    return outcomes;
}

std::vector<std::string> results_of_ranks(int size, const std::function<std::string(LocalRank&)>& work,
                                          const LocalRanksOptions& options) {
    std::vector<std::string> results;
    const std::vector<RankOutcome> outcomes = rank_outcomes(size, work, options);
    for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
        const RankOutcome& outcome = outcomes[rank];
        if (outcome.signal != 0) ADD_FAILURE() << "rank " << rank << " was ended by signal " << outcome.signal;
        if (!outcome.error.empty()) ADD_FAILURE() << "rank " << rank << ": " << outcome.error;
        for (const std::string& failure : outcome.failures) ADD_FAILURE() << "rank " << rank << ": " << failure;
        results.push_back(outcome.result);
    }
    return results;
}

}  // namespace headway::backend
