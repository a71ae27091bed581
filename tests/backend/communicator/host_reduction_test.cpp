#include "backend/communicator/host_reduction.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "backend/backend_error.h"
#include "tests/backend/local_ranks.h"

namespace headway::backend {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::chrono::milliseconds kTimeout{10'000};

/// A port that is free now.
RendezvousPoint free_point() {
    const int probe = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::bind(probe, reinterpret_cast<sockaddr*>(&address), sizeof address);
    socklen_t length = sizeof address;
    ::getsockname(probe, reinterpret_cast<sockaddr*>(&address), &length);
    ::close(probe);
    return {"127.0.0.1", ntohs(address.sin_port)};
}

/// Runs `work` of every rank in a process of its own; returns their exit codes (128 + signal for a killed one).
std::vector<int> ranks(int size, const std::function<int(int rank)>& work) {
    std::vector<pid_t> processes;
    for (int rank = 0; rank < size; ++rank) {
        const pid_t process = ::fork();
        if (process == 0) {
            try {
                ::_exit(work(rank));
            } catch (const std::exception& error) {
                std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
                ::_exit(1);
            }
        }
        processes.push_back(process);
    }
    std::vector<int> codes;
    for (const pid_t process : processes) {
        int status = 0;
        ::waitpid(process, &status, 0);
        codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
    return codes;
}

TEST(HostReduction, GivesEveryProcessTheSameSum) {
    const RendezvousPoint point = free_point();
    const std::vector<int> codes = ranks(3, [&](int rank) {
        HostReduction communicator(point, rank, 3, kTimeout);
        if (communicator.rank() != rank || communicator.size() != 3) return 1;
        std::vector<double> values(10'000);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.1 * static_cast<double>(i) + rank;
        communicator.sum(values);
        for (std::size_t i = 0; i < values.size(); ++i)
            if (std::abs(values[i] - (0.3 * static_cast<double>(i) + 3.0)) > 1e-9) return 2;
        // Bit for bit: the sum over all of "mine less the sum of rank 0" is exactly 0.
        std::vector<double> of_first = values;
        if (rank != 0) of_first.assign(values.size(), 0.0);
        communicator.sum(of_first);
        if (of_first != values) return 3;
        double one = 1.0;
        communicator.sum(std::span(&one, 1));
        return one == 3.0 ? 0 : 4;
    });
    EXPECT_EQ(codes, (std::vector<int>{0, 0, 0}));
}

TEST(HostReduction, FailsInEveryProcessWhenOneIsKilled) {
    const RendezvousPoint point = free_point();
    const std::vector<int> codes = ranks(3, [&](int rank) {
        HostReduction communicator(point, rank, 3, kTimeout);
        std::vector<double> values(1000, 1.0);
        try {
            for (int round = 0;; ++round) {
                if (rank == 1 && round == 20) ::kill(::getpid(), SIGKILL);
                communicator.sum(values);
            }
        } catch (const BackendError& error) {
            const std::string what = error.what();
            const bool named = what.find("rank " + std::to_string(rank) + " of 3: all-reduce of group 'training'") == 0;
            return named && what.find("rank 1 was lost") != std::string::npos ? 7 : 8;
        }
    });
    EXPECT_EQ(codes, (std::vector<int>{7, 128 + SIGKILL, 7}));
}

TEST(HostReduction, SaysWhoIsMissing) {
    const RendezvousPoint point = free_point();
    try {
        HostReduction alone(point, 0, 2, std::chrono::milliseconds(200));
        FAIL() << "a process that never came was met";
    } catch (const BackendError& error) {
        EXPECT_THAT(error.what(), AllOf(HasSubstr("rank 0 of 2: rendezvous at 127.0.0.1:"),
                                        HasSubstr("waiting for 1 more processes: timed out")));
    }
    try {
        HostReduction second(point, 1, 2, std::chrono::milliseconds(200));
        FAIL() << "nobody listens";
    } catch (const BackendError& error) {
        EXPECT_THAT(error.what(), AllOf(HasSubstr("rank 1 of 2"), HasSubstr("connect to rank 0: Connection refused")));
    }
}

TEST(Rendezvous, TellsTwoProcessesOfOneRankApart) {
    const RendezvousPoint point = free_point();
    const std::vector<int> codes = ranks(3, [&](int rank) {
        try {
            HostControl control(point, rank == 0 ? 0 : 1, 3, kTimeout);
        } catch (const BackendError& error) {
            const bool told =
                std::string(error.what()).find("two processes say that they are rank 1") != std::string::npos;
            return told ? 5 : 6;
        }
        return 0;
    });
    EXPECT_EQ(codes, (std::vector<int>{5, 5, 5}));
}

TEST(Rendezvous, IsNotDisturbedByWhatElseConnectsThere) {
    const RendezvousPoint point = local_listener();
    const auto stranger = [&](const std::string& says) {
        const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(static_cast<std::uint16_t>(point.port));
        EXPECT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        EXPECT_EQ(::send(socket, says.data(), says.size(), 0), static_cast<ssize_t>(says.size()));
        return socket;
    };
    ::close(stranger(""));
    const int asks = stranger("GET / HTTP/1.1\r\nHost: node17\r\n\r\n"), is_silent = stranger("");
    const std::vector<int> codes = ranks(2, [&](int rank) {
        RendezvousPoint mine = point;
        if (rank != 0) mine.listener = -1;
        HostControl control(mine, rank, 2, kTimeout);
        return static_cast<int>(control.all_gather({}).size());
    });
    for (const int socket : {asks, is_silent, point.listener}) ::close(socket);
    EXPECT_EQ(codes, (std::vector<int>{2, 2}));
}

TEST(Rendezvous, IsAHostAndAPort) {
    EXPECT_EQ(parse_rendezvous("node17:29500").host, "node17");
    EXPECT_EQ(parse_rendezvous("node17:29500").port, 29500);
    for (const char* text : {"node17", "node17:", ":29500", "node17:0", "node17:65536", "node17:29500x"})
        EXPECT_THROW(parse_rendezvous(text), std::invalid_argument) << text;
}

}  // namespace
}  // namespace headway::backend
