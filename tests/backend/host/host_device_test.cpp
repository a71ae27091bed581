#include "backend/host/host_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "backend/backend_error.h"
#include "backend/host/memory_pool.h"

namespace headway::tests {
namespace {

using backend::BackendError;
using backend::Buffer;
using backend::DataType;
using backend::MemoryPool;
using backend::Tensor;
using scenarios::Bytes;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(HostDevice, WorksInOneTypeThroughout) {
    EXPECT_EQ(backend::make_host_device()->working_type(), DataType::kFloat32);
    EXPECT_EQ(backend::make_host_device()->accumulation_type(), DataType::kFloat32);
    EXPECT_EQ(backend::make_host_device(DataType::kFloat64)->accumulation_type(), DataType::kFloat64);
    EXPECT_THROW(backend::make_host_device(DataType::kBfloat16), std::invalid_argument);
}

TEST(HostDevice, HandsOutAlignedMemoryAndCountsIt) {
    const auto device = backend::make_host_device();
    EXPECT_EQ(device->memory_used(), Bytes(0));
    {
        std::vector<Buffer> buffers;
        for (const std::int64_t bytes : {1, 255, 257, 5000, 1 << 20}) {
            buffers.push_back(device->allocate(Bytes(bytes)));
            EXPECT_EQ(buffers.back().bytes(), bytes);
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffers.back().data()) % 256, 0u);
            std::memset(buffers.back().data(), 1, static_cast<std::size_t>(bytes));
        }
        EXPECT_GE(device->memory_used(), Bytes(5769 + (1 << 20)));
        EXPECT_LE(device->memory_used(), Bytes((5769 + (1 << 20)) * 5 / 4 + 5 * 256));
        EXPECT_GT(device->memory_total(), device->memory_used());
    }
    EXPECT_EQ(device->memory_used(), Bytes(0));
    EXPECT_EQ(device->allocate(Bytes(0)).data(), nullptr);
}

TEST(HostDevice, CopiesToAndFromTheHost) {
    const auto device = backend::make_host_device();
    const Buffer buffer = device->allocate(DataType::kFloat32, 12);
    const std::vector<float> sent = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    device->from_host(sent.data(), buffer.tensor(DataType::kFloat32, 3, 4));
    std::vector<float> received(8);
    device->to_host(buffer.tensor(DataType::kFloat32, 3, 4).row_range(1, 2), received.data());
    EXPECT_THAT(received, ::testing::ElementsAre(4, 5, 6, 7, 8, 9, 10, 11));
    EXPECT_THROW(device->to_host(buffer.tensor(DataType::kFloat32, 3, 4).column_range(0, 2), received.data()),
                 std::invalid_argument);
}

TEST(HostDevice, MarksFollowTheMonotonicClock) {
    const auto device = backend::make_host_device();
    const backend::Mark before = device->mark();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const backend::Mark after = device->mark();
    EXPECT_GE(device->time_of(before), scenarios::Duration::nanoseconds(0));
    EXPECT_GE(device->time_of(after) - device->time_of(before), scenarios::Duration::milliseconds(5));
}

/// Wherever its tensors lie: the products of a BLAS, and sums over rows with a rest.
TEST(HostDevice, GivesTheSameBitsInEveryRun) {
    const auto run = [](std::int64_t offset) {
        const auto device = backend::make_host_device();
        std::vector<Buffer> buffers;
        const auto of = [&](std::int64_t rows, std::int64_t columns) {
            buffers.push_back(device->allocate(DataType::kFloat32, rows * columns + offset));
            const Tensor whole = buffers.back().tensor(DataType::kFloat32, 1, rows * columns + offset);
            const Tensor tensor = whole.elements(offset, rows * columns).shaped(rows, columns);
            std::vector<float> values(static_cast<std::size_t>(rows * columns));
            for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(0.37f * static_cast<float>(i));
            device->from_host(values.data(), tensor);
            return tensor;
        };
        backend::Operations& operations = device->operations();
        const Tensor x = of(66, 48), weights = of(48, 48), q = of(66, 48), out = of(66, 48), log_sums = of(6, 33);
        const Tensor gamma = of(1, 48), mean = of(1, 66), rstd = of(1, 66), y = of(66, 48), sums = of(1, 48);
        operations.gemm(backend::Transpose::kNo, backend::Transpose::kYes, 1.0, x, weights, 0.0, q);
        operations.attention({2, 33, 3, 3, 16}, q, x, x, out, log_sums);
        operations.layer_norm(out, gamma, gamma, 1e-5, y, mean, rstd);
        operations.bias_gradient(y, sums);
        std::vector<float> result(static_cast<std::size_t>(y.count()) + 48);
        device->to_host(y, result.data());
        device->to_host(sums, result.data() + y.count());
        return result;
    };
    const std::vector<float> first = run(0);
    for (const std::int64_t offset : {0, 1, 5}) EXPECT_EQ(run(offset), first) << offset;
}

TEST(HostDevice, RefusesWhatIsMoreThanItsMemory) {
    const auto device = backend::make_host_device();
    const Bytes more = device->memory_total() + Bytes(1);
    EXPECT_THAT([&] { device->allocate(more); },
                ThrowsMessage<BackendError>(
                    AllOf(HasSubstr("host: "), HasSubstr(std::to_string(more.count()) + " bytes"), HasSubstr("free"))));
}

TEST(HostMemoryPool, HandsAReturnedBlockOutAgain) {
    MemoryPool pool(1 << 20);
    void* block = pool.take(10'000);
    pool.give_back(block);
    EXPECT_GE(pool.kept_bytes(), 10'000);
    EXPECT_EQ(pool.take(9'900), block) << "of the same rounded size";
    EXPECT_EQ(pool.kept_bytes(), 0);
    pool.give_back(block);
}

TEST(HostMemoryPool, ReleasesWhatItKeepsBeforeItRefuses) {
    MemoryPool pool(1 << 20);
    pool.give_back(pool.take(700'000));
    void* other = pool.take(400'000);  // fits only once the first is released
    EXPECT_EQ(pool.kept_bytes(), 0);
    EXPECT_THROW(pool.take(700'000), BackendError);
    pool.give_back(other);
}

TEST(HostMemoryPool, KnowsWhatTheMachineHas) {
    EXPECT_GT(backend::usable_memory_bytes(), std::int64_t{1} << 20);
    EXPECT_LE(backend::available_memory_bytes(), backend::usable_memory_bytes());
    EXPECT_GT(backend::available_memory_bytes(), 0);
}

}  // namespace
}  // namespace headway::tests
