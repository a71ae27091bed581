#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "backend/backend_error.h"
#include "backend/cuda/cuda_module.h"
#include "tests/backend/device/operand.h"
#include "tests/device/one_process.h"

/// NCCL with a world of one: every call goes through the library, though there is nobody to talk to. Groups of several
/// GPUs pass the suite of tests/backend/communicator where a machine has them.
namespace headway::tests {
namespace {

using backend::BackendError;
using backend::DataType;
using backend::ReduceOperation;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class NcclWorldOfOne : public ::testing::Test {
  protected:
    void SetUp() override {
        device_ = backend::cuda_module().make_device(0, DataType::kBfloat16);
        backend::CommunicatorOptions options;
        options.timeout = std::chrono::milliseconds(20'000);
        options.single_too = true;
        maker_ = backend::cuda_module().make_communicators(*device_, control_, options);
        groups_ = maker_->make({{"world", {0}}, {"another", {0}}});
    }
    Operand operand(DataType type, double value, std::int64_t count = 1000) {
        return Operand(*device_, type, Values(1, count, value), 0);
    }

    OneProcess control_;
    std::unique_ptr<backend::Device> device_;
    std::unique_ptr<backend::CommunicatorMaker> maker_;
    std::vector<std::unique_ptr<backend::Communicator>> groups_;
};

TEST_F(NcclWorldOfOne, ReducesEveryTypeToItself) {
    for (const DataType type : {DataType::kFloat64, DataType::kFloat32, DataType::kBfloat16, DataType::kInt32}) {
        const Operand value = operand(type, 3.0);
        for (const auto operation : {ReduceOperation::kSum, ReduceOperation::kMaximum})
            groups_[0]->all_reduce(value, operation)->wait();
        EXPECT_EQ(value.read().at, Values(1, 1000, 3.0).at);
    }
}

TEST_F(NcclWorldOfOne, ScattersGathersAndBroadcasts) {
    const Operand from = operand(DataType::kFloat32, 2.0), to = operand(DataType::kFloat32, 0.0),
                  gathered = operand(DataType::kFloat32, 0.0);
    groups_[0]->reduce_scatter(from, to)->wait();
    groups_[1]->all_gather(to, gathered)->wait();
    groups_[0]->broadcast(gathered, 0)->wait();
    EXPECT_EQ(gathered.read().at, Values(1, 1000, 2.0).at);
}

TEST_F(NcclWorldOfOne, StartsAfterTheDeviceAndIsSeenAfterTheWait) {
    const std::int64_t count = 32 << 20;
    const backend::Buffer a = device_->allocate(DataType::kFloat32, count),
                          b = device_->allocate(DataType::kFloat32, count);
    const auto of = [&](const backend::Buffer& buffer) { return buffer.tensor(DataType::kFloat32, 1, count); };
    for (int round = 1; round <= 20; ++round) {
        device_->operations().fill(of(a), round);
        auto work = groups_[0]->reduce_scatter(of(a), of(b));
        work->wait();
        device_->operations().scale(of(b), 2.0);
        float last = 0.0f;
        device_->to_host(of(b).elements(count - 1, 1), &last);
        EXPECT_EQ(last, 2.0f * static_cast<float>(round));
    }
}

TEST_F(NcclWorldOfOne, SaysWhenACallIsOver) {
    const Operand value = operand(DataType::kFloat32, 1.0);
    const auto work = groups_[0]->all_reduce(value, ReduceOperation::kSum);
    device_->synchronize();
    for (int i = 0; i < 1000 && !work->done(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(work->done());
}

TEST_F(NcclWorldOfOne, EndsEverythingAfterAnAbort) {
    groups_[0]->abort("enough");
    const Operand value = operand(DataType::kFloat32, 1.0);
    for (auto& group : groups_) {
        EXPECT_THAT([&] { group->all_reduce(value, ReduceOperation::kSum); },
                    ThrowsMessage<BackendError>(HasSubstr("enough")));
    }
    EXPECT_THROW(device_->synchronize(), BackendError);
    for (int i = 0; i < 1000 && control_.reason().empty(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_THAT(control_.reason(), HasSubstr("enough")) << "the other processes hear of it";
}

TEST_F(NcclWorldOfOne, FailsWhenTheJobDoes) {
    control_.abort("process 3 was lost");
    const Operand value = operand(DataType::kFloat32, 1.0);
    EXPECT_THAT([&] { groups_[1]->all_reduce(value, ReduceOperation::kSum); },
                ThrowsMessage<BackendError>(HasSubstr("process 3 was lost")));
}

TEST_F(NcclWorldOfOne, LeavesTheDeviceToALaterJob) {
    groups_[0]->abort("enough");
    groups_.clear();
    maker_.reset();
    OneProcess next;
    backend::CommunicatorOptions options;
    options.single_too = true;
    const auto maker = backend::cuda_module().make_communicators(*device_, next, options);
    const auto groups = maker->make({{"world", {0}}});
    const Operand value = operand(DataType::kFloat32, 4.0);
    groups[0]->all_reduce(value, ReduceOperation::kSum)->wait();
    EXPECT_EQ(value.read().at, Values(1, 1000, 4.0).at);
}

}  // namespace
}  // namespace headway::tests
