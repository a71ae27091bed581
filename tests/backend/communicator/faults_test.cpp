#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "backend/backend_error.h"
#include "backend/communicator/host_communicators.h"
#include "backend/communicator/host_control.h"
#include "tests/backend/communicator/conformance.h"
#include "tests/backend/local_ranks.h"

namespace headway::backend {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using FaultClock = std::chrono::steady_clock;

std::int64_t milliseconds_since(FaultClock::time_point begin) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(FaultClock::now() - begin).count();
}

/// Sums for ever; returns the message of the error that ends them.
std::string message_of_sums(Communicator& group, std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count), 1.0f);
    const Tensor tensor{values.data(), DataType::kFloat32, 1, count, count};
    try {
        for (;;) {
            group.all_reduce(tensor, ReduceOperation::kMaximum)->wait();
        }
    } catch (const BackendError& error) {
        return error.what();
    }
}

std::string message_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const BackendError& error) {
        return error.what();
    }
    return "no error";
}

using Through = HostCommunicatorMaker::Through;

class CommunicatorFaults : public ::testing::TestWithParam<Through> {
  protected:
    static LocalRanksOptions options() {
        LocalRanksOptions options;
        options.through = GetParam();
        return options;
    }
};

std::string way_of(const ::testing::TestParamInfo<Through>& through) {
    return through.param == Through::kNetwork ? "network" : "shared_memory";
}

INSTANTIATE_TEST_SUITE_P(All, CommunicatorFaults,
                         ::testing::Values(Through::kNetwork, Through::kSharedMemoryWherePossible), way_of);

TEST_P(CommunicatorFaults, EverySurvivorIsToldAtOnceWhoWasKilled) {
    // Neighbours and others alike, in the middle of large sums; a timeout would take 20 s.
    LocalRanksOptions options = CommunicatorFaults::options();
    FaultClock::time_point killed;
    options.meanwhile = [&](const std::vector<int>& processes) {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        ::kill(processes[2], SIGKILL);
        killed = FaultClock::now();
    };
    const auto outcomes = rank_outcomes(
        5,
        [](LocalRank& local) {
            const auto groups = local.communicators.make(one_group(local.size));
            return message_of_sums(*groups[0], 300'000);
        },
        options);
    EXPECT_LT(milliseconds_since(killed), 3000);
    EXPECT_EQ(outcomes[2].signal, SIGKILL);
    for (const int rank : {0, 1, 3, 4}) {
        EXPECT_TRUE(outcomes[static_cast<std::size_t>(rank)].finished());
        EXPECT_THAT(outcomes[static_cast<std::size_t>(rank)].result,
                    AllOf(HasSubstr("rank " + std::to_string(rank) + " of 5: all-reduce of group 'all' (member " +
                                    std::to_string(rank) + " of 5): "),
                          HasSubstr("rank 2 was lost: ")));
    }
}

TEST_P(CommunicatorFaults, TheLossOfRankZeroIsNoticedToo) {
    const auto outcomes = rank_outcomes(
        3,
        [](LocalRank& local) {
            const auto groups = local.communicators.make(one_group(local.size));
            local.control.gather({}, 0);
            if (local.rank == 0) ::kill(::getpid(), SIGKILL);
            return message_of_sums(*groups[0], 10);
        },
        options());
    EXPECT_EQ(outcomes[0].signal, SIGKILL);
    EXPECT_THAT(outcomes[1].result, HasSubstr("rank 0 was lost"));
    EXPECT_THAT(outcomes[2].result, HasSubstr("rank 0 was lost"));
}

TEST_P(CommunicatorFaults, AMemberThatStallsIsNoticedWithinTheTimeout) {
    LocalRanksOptions options = CommunicatorFaults::options();
    options.timeout = std::chrono::milliseconds(700);
    std::vector<int> all_processes;
    FaultClock::time_point stopped;
    options.meanwhile = [&](const std::vector<int>& processes) {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        stopped = FaultClock::now();
        ::kill(processes[1], SIGSTOP);
        std::this_thread::sleep_for(std::chrono::milliseconds(2500));
        ::kill(processes[1], SIGCONT);
    };
    const auto outcomes = rank_outcomes(
        4,
        [](LocalRank& local) {
            const auto groups = local.communicators.make(one_group(local.size));
            const std::string message = message_of_sums(*groups[0], 50'000);
            return message + " | " + std::to_string(FaultClock::now().time_since_epoch().count());
        },
        options);
    for (const std::size_t rank : {0u, 2u, 3u}) {
        const std::string& result = outcomes[rank].result;
        EXPECT_THAT(result, ContainsRegex("rank [023] waited 700 ms for rank [0-3] in all-reduce of group 'all'"));
        const std::int64_t at = std::stoll(result.substr(result.rfind('|') + 1));
        EXPECT_LT((at - stopped.time_since_epoch().count()) / 1'000'000, 2000) << "noticed after the timeout only";
    }
    EXPECT_THAT(outcomes[1].result, HasSubstr("rank 1 of 4: all-reduce of group 'all'"));  // it is told, too
}

TEST_P(CommunicatorFaults, AbortEndsWhatIsUnderWayAtThePeersWithItsReason) {
    const auto results = run_ranks(
        4,
        [](LocalRank& local) {
            const auto groups = local.communicators.make({{"all", everybody(4)}, {"two", {0, 1}}});
            std::vector<float> values(10);
            const Tensor tensor{values.data(), DataType::kFloat32, 1, 10, 10};
            std::string message;
            if (local.rank == 3) {
                std::this_thread::sleep_for(std::chrono::milliseconds(100));
                groups[0]->abort("the loss is not a number");
                message = message_of([&] { groups[0]->broadcast(tensor, 0)->wait(); });
            } else if (local.rank == 2) {  // in the control
                message = message_of([&] { local.control.all_gather({}); });
            } else {  // in a group that the one who aborts is no member of
                const std::vector<Message> messages = {{false, 1 - local.rank, tensor}};
                const std::unique_ptr<Work> work = groups[1]->exchange(messages);
                message = message_of([&] { work->wait(); });
                EXPECT_EQ(message_of([&] { work->wait(); }), message);
                EXPECT_EQ(message_of([&] { work->done(); }), message);
            }
            // Afterwards everything fails at once.
            EXPECT_THAT(message_of([&] { groups[0]->all_reduce(tensor, ReduceOperation::kSum); }),
                        HasSubstr("not a number"));
            EXPECT_THAT(message_of([&] { groups[0]->exchange({}); }), HasSubstr("not a number"));
            EXPECT_THAT(message_of([&] { local.communicators.make(one_group(4)); }), HasSubstr("not a number"));
            std::vector<char> bytes;
            EXPECT_THAT(message_of([&] { local.control.broadcast(bytes, 0); }), HasSubstr("not a number"));
            return message;
        },
        options());
    for (const std::string& result : results) EXPECT_THAT(result, HasSubstr(": the loss is not a number"));
    EXPECT_THAT(results[2], HasSubstr("rank 2 of 4: control all-gather: "));
    EXPECT_THAT(results[0], HasSubstr("rank 0 of 4: exchange of group 'two' (member 0 of 2): "));
}

TEST_P(CommunicatorFaults, NothingHangsWhenWorkIsUnderWayWhileItFails) {
    // Works, communicators and control go out of scope with sums and messages that will never be through.
    const auto begin = FaultClock::now();
    const auto outcomes = rank_outcomes(
        3,
        [](LocalRank& local) {
            std::vector<float> values(1'000'000);
            const Tensor tensor{values.data(), DataType::kFloat32, 1, 1'000'000, 1'000'000};
            const auto groups = local.communicators.make(one_group(local.size));
            if (local.rank == 2) {
                std::this_thread::sleep_for(std::chrono::milliseconds(100));
                throw std::runtime_error("gone by an exception");
            }
            std::vector<std::unique_ptr<Work>> works;
            for (int i = 0; i < 3; ++i) works.push_back(groups[0]->all_reduce(tensor, ReduceOperation::kSum));
            works.push_back(groups[0]->exchange(std::vector<Message>{{true, 2, tensor}}));
            return std::string("left");
        },
        options());
    EXPECT_LT(milliseconds_since(begin), 10'000);
    EXPECT_EQ(outcomes[2].error, "gone by an exception");
    EXPECT_EQ(outcomes[0].result, "left");
    EXPECT_EQ(outcomes[1].result, "left");
}

TEST_P(CommunicatorFaults, MembersThatDisagreeAreTold) {
    const auto results = run_ranks(
        3,
        [](LocalRank& local) {
            return message_of([&] {
                local.communicators.make({{local.rank == 2 ? "pipeline 0" : "data 0", everybody(3)}});
            });
        },
        options());
    for (const std::string& result : results)
        EXPECT_THAT(result, HasSubstr(": rank 2 asks for other groups than rank 0"));
    const auto calls = run_ranks(
        2,
        [](LocalRank& local) {
            return message_of(
                [&] { local.rank == 0 ? (void)local.control.gather({}, 0) : (void)local.control.all_gather({}); });
        },
        options());
    for (const std::string& result : calls)
        EXPECT_THAT(result, AllOf(HasSubstr("rank 1 is in all-gather"), HasSubstr("rank 0 is in gather with root 0")));
}

TEST_P(CommunicatorFaults, MessagesOfDifferentSizesDoNotMeet) {
    LocalRanksOptions options = CommunicatorFaults::options();
    options.timeout = std::chrono::milliseconds(300);
    const auto results = run_ranks(
        2,
        [](LocalRank& local) {
            const auto groups = local.communicators.make(one_group(2));
            std::vector<float> values(100, 7.0f);
            const Tensor tensor{values.data(), DataType::kFloat32, 1, local.rank == 0 ? 100 : 99, 100};
            const std::vector<Message> messages = {{local.rank == 0, 1 - local.rank, tensor}};
            return message_of([&] { groups[0]->exchange(messages)->wait(); });
        },
        options);
    for (const std::string& result : results)
        EXPECT_THAT(result, ContainsRegex("rank [01] waited 300 ms for rank [01] in exchange of group 'all'"));
}

TEST_P(CommunicatorFaults, CollectivesOfDifferentSizesDoNotMeet) {
    LocalRanksOptions options = CommunicatorFaults::options();
    options.timeout = std::chrono::milliseconds(300);
    const auto results = run_ranks(
        3,
        [](LocalRank& local) {
            const auto groups = local.communicators.make(one_group(3));
            std::vector<float> values(100, 7.0f);
            const Tensor tensor{values.data(), DataType::kFloat32, 1, local.rank == 1 ? 100 : 99, 100};
            return message_of([&] { groups[0]->all_reduce(tensor, ReduceOperation::kSum)->wait(); });
        },
        options);
    const std::string expected = GetParam() == Through::kNetwork
                                     ? "rank [012] waited 300 ms for rank [012] in all-reduce of group 'all'"
                                     : "rank 1 makes another call, or one of another size, than rank 0";
    for (const std::string& result : results) EXPECT_THAT(result, ContainsRegex(expected));
}

TEST_P(CommunicatorFaults, WrongArgumentsAreRefusedBeforeAnythingIsSent) {
    run_ranks(
        2,
        [](LocalRank& local) {
            const auto groups = local.communicators.make(one_group(2));
            std::vector<float> values(12);
            const Tensor tensor{values.data(), DataType::kFloat32, 3, 4, 4};
            const Tensor columns = tensor.column_range(0, 2);
            Tensor half_precision = tensor;
            half_precision.type = DataType::kBfloat16;
            EXPECT_THROW(groups[0]->all_reduce(columns, ReduceOperation::kSum), std::invalid_argument);
            EXPECT_THROW(groups[0]->all_reduce(half_precision, ReduceOperation::kSum), std::invalid_argument);
            EXPECT_THROW(groups[0]->reduce_scatter(tensor, tensor.elements(0, 5)), std::invalid_argument);
            EXPECT_THROW(groups[0]->all_gather(tensor.elements(0, 5), tensor), std::invalid_argument);
            EXPECT_THROW(groups[0]->broadcast(tensor, 2), std::invalid_argument);
            EXPECT_THROW(groups[0]->exchange(std::vector<Message>{{true, local.rank, tensor}}), std::invalid_argument);
            EXPECT_THROW(local.communicators.make({{"wrong", {0, 2}}}), std::invalid_argument);
            EXPECT_THROW(local.communicators.make({{"twice", {0, 0}}}), std::invalid_argument);
            EXPECT_THROW(local.control.gather({}, 2), std::invalid_argument);
            groups[0]->all_reduce(tensor, ReduceOperation::kSum)->wait();
        },
        options());
}

TEST_P(CommunicatorFaults, SurvivorsMeetAgainAndGoOn) {
    // A second point, agreed on before; ranks close up. Rank 0 is among the lost.
    const RendezvousPoint second = local_listener();
    const auto outcomes = rank_outcomes(
        4,
        [&](LocalRank& local) -> std::string {
            {
                const auto groups = local.communicators.make(one_group(local.size));
                local.control.gather({}, 0);
                if (local.rank == 0) ::kill(::getpid(), SIGKILL);
                EXPECT_THAT(message_of_sums(*groups[0], 1000), HasSubstr("rank 0 was lost"));
            }
            RendezvousPoint point = second;
            if (local.rank != 1) ::close(std::exchange(point.listener, -1));
            HostControl control(point, local.rank - 1, 3, std::chrono::milliseconds(10'000));
            HostCommunicatorMaker communicators(control, std::chrono::milliseconds(10'000));
            const auto groups = communicators.make(one_group(3));
            double rank = local.rank;
            groups[0]->all_reduce({&rank, DataType::kFloat64, 1, 1, 1}, ReduceOperation::kSum)->wait();
            return std::to_string(static_cast<int>(rank));
        },
        options());
    ::close(second.listener);
    EXPECT_EQ(outcomes[0].signal, SIGKILL);
    for (const std::size_t rank : {1u, 2u, 3u}) {
        EXPECT_TRUE(outcomes[rank].finished()) << outcomes[rank].error;
        EXPECT_EQ(outcomes[rank].result, "6");
    }
}

TEST(HostControl, IsMadeAgainAmongSurvivorsAtTheSamePoint) {
    const RendezvousPoint point = local_listener();
    LocalRanksOptions options;
    options.meanwhile = [&](const std::vector<int>&) { ::close(point.listener); };  // as a launcher does
    const auto outcomes = rank_outcomes(
        3,
        [&](LocalRank& local) -> std::string {
            RendezvousPoint mine = point;
            if (local.rank != 0) ::close(std::exchange(mine.listener, -1));
            {
                HostControl control(mine, local.rank, 3, std::chrono::milliseconds(10'000));
                control.gather({}, 2);
                if (local.rank == 2) ::kill(::getpid(), SIGKILL);
                EXPECT_THAT(message_of([&] { control.all_gather({}); }), HasSubstr("rank 2 was lost"));
            }
            mine.listener = -1;
            HostControl control(mine, local.rank, 2, std::chrono::milliseconds(10'000));
            return std::to_string(control.all_gather({}).size());
        },
        options);
    EXPECT_EQ(outcomes[2].signal, SIGKILL);
    EXPECT_EQ(outcomes[0].result, "2") << outcomes[0].error;
    EXPECT_EQ(outcomes[1].result, "2") << outcomes[1].error;
}

TEST(SharedGroups, GoOverTheNetworkEverywhereWhenOneProcessHasNoSharedMemory) {
    run_ranks(3, [](LocalRank& local) {
        if (local.rank == 1) {  // it makes the memory of the second group
            ::signal(SIGXFSZ, SIG_IGN);
            const rlimit none{0, 0};
            ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
        }
        const auto& maker = dynamic_cast<HostCommunicatorMaker&>(local.communicators);
        const auto groups = local.communicators.make({{"all", everybody(3)}, {"two", {1, 2}}});
        std::vector<float> values(1000, 1.0f);
        for (const auto& group : groups)
            if (group)
                group->all_reduce({values.data(), DataType::kFloat32, 1, 1000, 1000}, ReduceOperation::kSum)->wait();
        EXPECT_THAT(values, ::testing::Each(local.rank == 0 ? 3.0f : 6.0f));
        EXPECT_GT(maker.bytes_sent(), 0);
    });
}

TEST(SharedGroups, SendNothingOverTheNetwork) {
    run_ranks(3, [](LocalRank& local) {
        const auto& maker = dynamic_cast<HostCommunicatorMaker&>(local.communicators);
        const auto groups = local.communicators.make(one_group(3));
        std::vector<float> values(300'000, 1.0f);
        groups[0]->all_reduce({values.data(), DataType::kFloat32, 1, 300'000, 300'000}, ReduceOperation::kSum)->wait();
        EXPECT_EQ(maker.bytes_sent(), 0);
    });
}

TEST(HostControl, RefusesAWorldOfAnotherSize) {
    const RendezvousPoint point = local_listener();
    const auto outcomes = rank_outcomes(2, [&](LocalRank& local) {
        RendezvousPoint mine = point;
        if (local.rank != 0) mine.listener = -1;
        return message_of([&] { HostControl(mine, local.rank, 2 + local.rank, std::chrono::milliseconds(5000)); });
    });
    ::close(point.listener);
    for (const RankOutcome& outcome : outcomes)
        EXPECT_THAT(outcome.result, HasSubstr("joining: rank 1 was started as one of 3 processes, rank 0 as one of 2"));
}

TEST(HostControl, WhoeverAskedIsToldOnceWhyItFailed) {
    run_ranks(2, [](LocalRank& local) {
        std::vector<std::string> told;
        std::mutex mutex;
        const auto note = [&](const std::string& reason) {
            const std::lock_guard lock(mutex);
            told.push_back(reason);
        };
        const std::shared_ptr<void> asked = local.control.when_failed(note);
        local.control.when_failed([](const std::string&) { ADD_FAILURE() << "its handle is gone"; }).reset();
        local.control.all_gather({});
        if (local.rank == 0) local.control.abort("first");
        EXPECT_THAT(message_of([&] { local.control.all_gather({}); }), HasSubstr("control all-gather: first"));
        local.control.abort("second");
        const std::shared_ptr<void> late = local.control.when_failed(note);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        const std::lock_guard lock(mutex);
        EXPECT_THAT(told, ::testing::ElementsAre("first", "first"));
    });
}

}  // namespace
}  // namespace headway::backend
