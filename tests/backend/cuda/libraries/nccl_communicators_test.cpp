#include "backend/cuda/nccl_communicators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/backend/cuda/libraries/fake_cuda.h"
#include "tests/backend/cuda/libraries/fake_nccl.h"
#include "tests/backend/cuda/libraries/thread_control.h"

/// The communicators' own logic, over fakes of CUDA's runtime and NCCL: who waits for whom, what is noticed, what
/// hangs.
namespace headway::tests {
namespace {

using backend::BackendError;
using backend::Buffer;
using backend::Communicator;
using backend::CudaDevice;
using backend::DataType;
using backend::GroupSpec;
using backend::Message;
using backend::ReduceOperation;
using backend::Tensor;
using backend::Work;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// One rank: a fake device and its communicators.
struct FakeRank {
    FakeRank(ThreadJob& job, int number, milliseconds timeout)
        : control(job, number), device(number, DataType::kFloat32), maker(device, control, {timeout, false}) {}
    Buffer floats(std::int64_t count, float value) {
        Buffer buffer = device.allocate(DataType::kFloat32, count);
        const std::vector<float> values(static_cast<std::size_t>(count), value);
        device.from_host(values.data(), buffer.tensor(DataType::kFloat32, 1, count));
        return buffer;
    }
    std::vector<float> read(const Tensor& tensor) {
        std::vector<float> values(static_cast<std::size_t>(tensor.count()));
        device.to_host(tensor, values.data());
        return values;
    }
    int rank() const { return control.rank(); }

    ThreadControl control;
    CudaDevice device;
    backend::NcclCommunicatorMaker maker;
};

Tensor all_of(const Buffer& buffer) {
    return buffer.tensor(DataType::kFloat32, 1, buffer.bytes() / 4);
}
std::vector<int> first_ranks(int count) {
    std::vector<int> ranks(static_cast<std::size_t>(count));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
}

/// Runs `work` in as many ranks at once; returns what each threw, by rank ("" for nothing).
std::vector<std::string> errors_of_ranks(int size, milliseconds timeout, const std::function<void(FakeRank&)>& work) {
    ThreadJob job(size);
    std::vector<std::string> errors(static_cast<std::size_t>(size));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
        threads.emplace_back([&, rank] {
            try {
                FakeRank own(job, rank, timeout);
                work(own);
            } catch (const BackendError& error) {
                errors[static_cast<std::size_t>(rank)] = error.what();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    return errors;
}

constexpr milliseconds kPatient{30'000};
constexpr milliseconds kHasty{300};

TEST(NcclCommunicators, ComputeWhatTheyAreAskedFor) {
    const auto errors = errors_of_ranks(4, kPatient, [](FakeRank& own) {
        const auto groups = own.maker.make({{"world", first_ranks(4)}, {"two", {3, 1}}, {"one", {2}}});
        const float mine = static_cast<float>(own.rank() + 1);
        const Buffer sum = own.floats(8, mine), largest = own.floats(2, mine), part = own.floats(2, 0.0f),
                     gathered = own.floats(4, 0.0f), told = own.floats(3, mine);
        groups[0]->all_reduce(all_of(sum), ReduceOperation::kSum)->wait();
        EXPECT_THAT(own.read(all_of(sum)), Each(10.0f));
        groups[0]->all_reduce(all_of(largest), ReduceOperation::kMaximum)->wait();
        EXPECT_THAT(own.read(all_of(largest)), Each(4.0f));
        groups[0]->reduce_scatter(all_of(sum), all_of(part))->wait();
        EXPECT_THAT(own.read(all_of(part)), Each(40.0f));
        groups[0]->broadcast(all_of(told), 2)->wait();
        EXPECT_THAT(own.read(all_of(told)), Each(3.0f));
        EXPECT_EQ(groups[1] != nullptr, own.rank() % 2 == 1);
        EXPECT_EQ(groups[2] != nullptr, own.rank() == 2);
        if (groups[1]) {
            EXPECT_EQ(groups[1]->rank(), own.rank() == 3 ? 0 : 1) << "by position";
            const Buffer two = own.floats(2, mine);
            groups[1]->all_gather(all_of(two), all_of(gathered))->wait();
            EXPECT_THAT(own.read(all_of(gathered)), ElementsAre(4.0f, 4.0f, 2.0f, 2.0f));
        }
        if (groups[2]) groups[2]->all_reduce(all_of(told), ReduceOperation::kSum)->wait();
    });
    EXPECT_THAT(errors, Each(""));
    EXPECT_EQ(fake_nccl_living(), 0);
}

/// Rank 0 talks to 1, then to 2; 1 to 2, then to 0; 2 to 0, then to 1: with one queue for all peers everybody would
/// wait.
TEST(NcclCommunicators, LetExchangesWithDifferentPeersPassEachOther) {
    const auto errors = errors_of_ranks(3, kPatient, [](FakeRank& own) {
        const auto groups = own.maker.make({{"messages", first_ranks(3)}});
        for (int round = 0; round < 5; ++round) {
            std::vector<Buffer> memory;
            std::vector<std::unique_ptr<Work>> works;
            for (const int step : {1, 2}) {
                const int peer = (own.rank() + step) % 3;
                memory.push_back(own.floats(4, static_cast<float>(10 * own.rank() + round)));
                memory.push_back(own.floats(4, -1.0f));
                const std::vector<Message> both = {{true, peer, all_of(memory[memory.size() - 2])},
                                                   {false, peer, all_of(memory.back())}};
                works.push_back(groups[0]->exchange(both));
            }
            for (auto& work : works) work->wait();
            for (const int step : {1, 2}) {
                EXPECT_THAT(own.read(all_of(memory[static_cast<std::size_t>(2 * step - 1)])),
                            Each(static_cast<float>(10 * ((own.rank() + step) % 3) + round)));
            }
        }
    });
    EXPECT_THAT(errors, Each(""));
}

/// A receive is posted long before its peer comes to its first message, which needs one of this rank first.
TEST(NcclCommunicators, PostMessagesBeforeTheirPeerIsThere) {
    const auto errors = errors_of_ranks(3, kPatient, [](FakeRank& own) {
        const auto groups = own.maker.make({{"ring", first_ranks(3)}});
        const int next = (own.rank() + 1) % 3, previous = (own.rank() + 2) % 3;
        const Buffer in = own.floats(4, -1.0f), out = own.floats(4, 1.0f);
        const std::vector<Message> receive = {{false, previous, all_of(in)}}, send = {{true, next, all_of(out)}};
        auto received = groups[0]->exchange(receive);
        EXPECT_FALSE(own.rank() == 0 && received->done());
        if (own.rank() != 0) {  // it comes round
            received->wait();
            own.device.synchronize();
        }
        auto sent = groups[0]->exchange(send);
        received->wait();
        sent->wait();
        EXPECT_THAT(own.read(all_of(in)), Each(1.0f));
    });
    EXPECT_THAT(errors, Each(""));
}

TEST(NcclCommunicators, StartAfterTheDeviceAndHoldItUp) {
    const auto errors = errors_of_ranks(2, kPatient, [](FakeRank& own) {
        const auto groups = own.maker.make({{"world", first_ranks(2)}});
        const Buffer value = own.floats(4, 0.0f), seen = own.floats(4, 0.0f);
        float* const data = static_cast<float*>(value.data());
        float* const copy = static_cast<float*>(seen.data());
        fake_stream_call(own.device.stream(), [=] {
            std::this_thread::sleep_for(milliseconds(50));
            for (int i = 0; i < 4; ++i) data[i] = 5.0f;
        });
        const auto work = groups[0]->all_reduce(all_of(value), ReduceOperation::kSum);
        EXPECT_FALSE(work->done());
        work->wait();
        fake_stream_call(own.device.stream(), [=] { std::copy(data, data + 4, copy); });
        EXPECT_THAT(own.read(all_of(seen)), Each(10.0f));
        EXPECT_TRUE(work->done());
    });
    EXPECT_THAT(errors, Each(""));
}

/// A computation that takes longer than the timeout stands before the collective: that is no absence.
TEST(NcclCommunicators, DoNotTakeALongComputationForAnAbsence) {
    const auto errors = errors_of_ranks(2, kHasty, [](FakeRank& own) {
        const auto groups = own.maker.make({{"world", first_ranks(2)}});
        const Buffer value = own.floats(4, 1.0f);
        fake_stream_call(own.device.stream(), [] { std::this_thread::sleep_for(3 * kHasty); });
        groups[0]->all_reduce(all_of(value), ReduceOperation::kSum)->wait();
        EXPECT_THAT(own.read(all_of(value)), Each(2.0f));
    });
    EXPECT_THAT(errors, Each(""));
}

/// Rank 1 never makes the call: the others learn of it where they wait for the device, and no thread is left hanging.
TEST(NcclCommunicators, EndEveryRankWhenAMemberStaysAway) {
    const auto errors = errors_of_ranks(3, kHasty, [](FakeRank& own) {
        const auto groups = own.maker.make({{"world", first_ranks(3)}});
        const Buffer value = own.floats(4, 1.0f);
        if (own.rank() == 1) {
            for (int i = 0; i < 1000; ++i) {
                std::this_thread::sleep_for(milliseconds(10));
                own.device.synchronize();  // throws once the job has failed
            }
        }
        groups[0]->all_reduce(all_of(value), ReduceOperation::kSum)->wait();
        own.device.synchronize();
    });
    for (const std::string& error : errors) {
        EXPECT_THAT(error,
                    AllOf(HasSubstr("all-reduce of group 'world'"), HasSubstr("stayed away longer than 300 ms")));
    }
    EXPECT_THAT(errors[0], HasSubstr("rank "));
    EXPECT_EQ(fake_nccl_living(), 0);
}

TEST(NcclCommunicators, NameTheMessageThatNobodyAnswered) {
    const auto errors = errors_of_ranks(2, kHasty, [](FakeRank& own) {
        const auto groups = own.maker.make({{"messages", first_ranks(2)}});
        const Buffer value = own.floats(4, 1.0f);
        const std::vector<Message> one = {{own.rank() == 0, 1 - own.rank(), all_of(value)}};
        groups[0]->exchange(one)->wait();
        own.device.synchronize();
        if (own.rank() == 0) groups[0]->exchange(one)->wait();  // rank 1 does not receive a second one
        for (int i = 0; i < 1000; ++i) {
            own.device.synchronize();
            std::this_thread::sleep_for(milliseconds(10));
        }
    });
    for (const std::string& error : errors)
        EXPECT_THAT(error, AllOf(HasSubstr("exchange of group 'messages, ranks 0 and 1'"), HasSubstr("stayed away")));
}

TEST(NcclCommunicators, GiveUpOnAPeerThatNeverComesToMeet) {
    const auto errors = errors_of_ranks(2, kHasty, [](FakeRank& own) {
        const auto groups = own.maker.make({{"messages", first_ranks(2)}});
        const Buffer value = own.floats(4, 1.0f);
        const std::vector<Message> one = {{false, 0, all_of(value)}};
        if (own.rank() == 1) groups[0]->exchange(one)->wait();
        for (int i = 0; i < 1000; ++i) {
            own.device.synchronize();
            std::this_thread::sleep_for(milliseconds(10));
        }
    });
    EXPECT_THAT(errors, Each(HasSubstr("meeting process 0 for messages: it did not come within 300 ms")));
}

TEST(NcclCommunicators, ReportAnErrorThatNcclFoundByItself) {
    const auto errors = errors_of_ranks(2, kPatient, [](FakeRank& own) {
        const auto groups = own.maker.make({{"world", first_ranks(2)}});
        const Buffer value = own.floats(4, 1.0f);
        groups[0]->all_reduce(all_of(value), ReduceOperation::kSum)->wait();
        own.device.synchronize();
        if (own.rank() == 0) {
            fake_nccl_break(1, true);
            return;  // nobody waits in a collective
        }
        for (int i = 0; i < 1000; ++i) {
            own.device.synchronize();
            std::this_thread::sleep_for(milliseconds(10));
        }
    });
    fake_nccl_break(1, false);
    EXPECT_THAT(errors[1], AllOf(HasSubstr("rank 1 of 2"), HasSubstr("of group 'world'"), HasSubstr("fake error")));
    EXPECT_EQ(fake_nccl_living(), 0);
}

TEST(NcclCommunicators, EndAtThePeersWhenOneAborts) {
    const auto errors = errors_of_ranks(3, kPatient, [](FakeRank& own) {
        const auto groups = own.maker.make({{"world", first_ranks(3)}, {"more", first_ranks(3)}});
        const Buffer value = own.floats(4, 1.0f), other = own.floats(4, 1.0f);
        if (own.rank() == 2) {
            groups[0]->abort("out of data");
            groups[1]->all_reduce(all_of(other), ReduceOperation::kSum)->wait();
            return;
        }
        auto first = groups[0]->all_reduce(all_of(value), ReduceOperation::kSum);
        auto second = groups[1]->all_reduce(all_of(other), ReduceOperation::kSum);
        first->wait();
        own.device.synchronize();
    });
    EXPECT_THAT(errors, Each(HasSubstr("out of data")));
    EXPECT_EQ(fake_nccl_living(), 0);
}

TEST(NcclCommunicators, FailEveryCallAfterAFailure) {
    const auto errors = errors_of_ranks(2, kPatient, [](FakeRank& own) {
        const auto groups = own.maker.make({{"world", first_ranks(2)}});
        const Buffer value = own.floats(4, 1.0f);
        own.control.all_gather({});  // both are there
        own.control.abort("rank 7 was lost");
        const std::vector<Message> one = {{true, 1 - own.rank(), all_of(value)}};
        EXPECT_THROW(groups[0]->all_reduce(all_of(value), ReduceOperation::kSum), BackendError);
        EXPECT_THROW(groups[0]->broadcast(all_of(value), 0), BackendError);
        EXPECT_THROW(groups[0]->exchange(one), BackendError);
        EXPECT_THROW(own.device.synchronize(), BackendError);
    });
    EXPECT_THAT(errors, Each(""));
}

TEST(NcclCommunicators, LeaveTheDeviceToALaterJob) {
    const auto errors = errors_of_ranks(1, kPatient, [](FakeRank& own) {
        own.control.abort("lost");
        EXPECT_THROW(own.device.synchronize(), BackendError);
        ThreadJob next(1);
        ThreadControl control(next, 0);
        backend::NcclCommunicatorMaker maker(own.device, control, {kPatient, true});
        const auto groups = maker.make({{"world", {0}}});
        const Buffer value = own.floats(4, 3.0f);
        groups[0]->all_reduce(all_of(value), ReduceOperation::kSum)->wait();
        EXPECT_THAT(own.read(all_of(value)), Each(3.0f));
    });
    EXPECT_THAT(errors, Each(""));
}

TEST(NcclCommunicators, RefuseDifferentGroups) {
    const auto errors = errors_of_ranks(2, kPatient, [](FakeRank& own) {
        own.maker.make({{own.rank() == 0 ? "data" : "tensor", first_ranks(2)}});
    });
    EXPECT_THAT(errors, Each(HasSubstr("wants other groups")));
}

TEST(NcclCommunicators, RefuseWhatIsNoCall) {
    errors_of_ranks(2, kPatient, [](FakeRank& own) {
        const auto groups = own.maker.make({{"world", first_ranks(2)}});
        const Buffer value = own.floats(4, 1.0f), odd = own.floats(3, 1.0f);
        EXPECT_THROW(groups[0]->reduce_scatter(all_of(value), all_of(odd)), std::invalid_argument);
        EXPECT_THROW(groups[0]->all_gather(all_of(value), all_of(odd)), std::invalid_argument);
        EXPECT_THROW(groups[0]->broadcast(all_of(value), 2), std::invalid_argument);
        const std::vector<Message> to_itself = {{true, own.rank(), all_of(value)}};
        EXPECT_THROW(groups[0]->exchange(to_itself), std::invalid_argument);
        EXPECT_THROW(own.maker.make({{"twice", {0, 0}}}), std::invalid_argument);
    });
}

}  // namespace
}  // namespace headway::tests
