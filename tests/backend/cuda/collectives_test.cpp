#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backend/backend_error.h"
#include "backend/cuda/collective_watch.h"
#include "backend/cuda/failure.h"
#include "backend/cuda/pair_ids.h"

/// The parts of the NCCL communicators that need no GPU.
namespace headway::tests {
namespace {

using backend::BackendError;
using backend::CollectiveWatch;
using backend::Failure;
using backend::PairIds;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(CollectiveWatch, CountsFromWhenTheDeviceGotThere) {
    CollectiveWatch watch(milliseconds(100));
    const CollectiveWatch::Clock::time_point start{};
    using State = CollectiveWatch::State;
    EXPECT_EQ(watch.look(start, false, false), State::kWaiting);
    EXPECT_EQ(watch.look(start + milliseconds(5000), false, false), State::kWaiting) << "behind a long computation";
    EXPECT_EQ(watch.look(start + milliseconds(5010), true, false), State::kRunning);
    EXPECT_EQ(watch.look(start + milliseconds(5110), true, false), State::kRunning);
    EXPECT_EQ(watch.look(start + milliseconds(5111), true, false), State::kLate);
}

TEST(CollectiveWatch, IsNotLateOnceDone) {
    CollectiveWatch watch(milliseconds(100));
    const CollectiveWatch::Clock::time_point start{};
    watch.look(start, true, false);
    EXPECT_EQ(watch.look(start + milliseconds(500), true, true), CollectiveWatch::State::kDone);
}

TEST(CollectiveFailure, IsTheFirstOne) {
    Failure failure;
    EXPECT_NO_THROW(failure.check());
    failure.set(BackendError(1, 4, "all-reduce of group 'data'", "late"));
    failure.set(BackendError(1, 4, "exchange", "aborted"));
    EXPECT_THAT([&] { failure.check(); }, ThrowsMessage<BackendError>(HasSubstr("all-reduce of group 'data': late")));
}

/// Processes of a job as threads of this one: a control is all that PairIds needs of them.
class LocalControl final : public backend::Control {
  public:
    LocalControl(std::vector<std::vector<char>>& shared, std::atomic<int>& arrived, int rank)
        : shared_(shared), arrived_(arrived), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(shared_.size()); }
    const std::string& address() const override { return address_; }
    void broadcast(std::vector<char>&, int) override {}
    std::vector<std::vector<char>> gather(const std::vector<char>&, int) override { return {}; }
    std::vector<std::vector<char>> all_gather(const std::vector<char>& bytes) override {
        shared_[static_cast<std::size_t>(rank_)] = bytes;
        ++arrived_;
        while (arrived_ < size()) std::this_thread::yield();
        return shared_;
    }
    void abort(const std::string&) override {}
    std::shared_ptr<void> when_failed(std::function<void(const std::string&)>) override { return nullptr; }

  private:
    std::vector<std::vector<char>>& shared_;
    std::atomic<int>& arrived_;
    int rank_;
    std::string address_ = "127.0.0.1";
};

void run_processes(int size, const std::function<void(int, PairIds&)>& process) {
    std::vector<std::vector<char>> shared(static_cast<std::size_t>(size));
    std::atomic<int> arrived{0}, left{size};
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
        threads.emplace_back([&, rank] {
            LocalControl control(shared, arrived, rank);
            PairIds ids(control);
            process(rank, ids);
            --left;
            while (left > 0) std::this_thread::yield();  // others may still ask
        });
    }
    for (std::thread& thread : threads) thread.join();
}

bool never() {
    return false;
}

TEST(PairIds, BringsAValueToWhoeverComesFirst) {
    run_processes(3, [](int rank, PairIds& ids) {
        const auto text = [](const std::vector<char>& value) { return std::string(value.begin(), value.end()); };
        if (rank == 0) {
            std::this_thread::sleep_for(milliseconds(30));  // the others ask before it is there
            ids.publish("g0:0-1", {'a', 'b'});
            ids.publish("g0:0-2", {'c'});
        } else {
            const std::string key = "g0:0-" + std::to_string(rank);
            EXPECT_EQ(text(ids.fetch(0, key, milliseconds(10'000), never)), rank == 1 ? "ab" : "c");
        }
    });
}

TEST(PairIds, SaysWhoDidNotCome) {
    run_processes(2, [](int rank, PairIds& ids) {
        if (rank == 0) return;
        EXPECT_THAT(
            [&] { ids.fetch(0, "g7:0-1", milliseconds(50), never); },
            ThrowsMessage<BackendError>(HasSubstr("meeting process 0 for messages: it did not come within 50 ms")));
    });
}

TEST(PairIds, StopsWaitingWhenTheJobFails) {
    run_processes(2, [](int rank, PairIds& ids) {
        if (rank == 0) return;
        int asked = 0;
        EXPECT_THROW(ids.fetch(0, "g7:0-1", std::chrono::hours(1), [&] { return ++asked > 3; }), BackendError);
    });
}

}  // namespace
}  // namespace headway::tests
