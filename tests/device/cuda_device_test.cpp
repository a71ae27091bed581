#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <vector>

#include "backend/backend_error.h"
#include "backend/cuda/cuda_module.h"
#include "backend/telemetry/gpu_sensors.h"
#include "tests/backend/device/operand.h"
#include "tests/backend/device/values.h"

namespace headway::tests {
namespace {

using backend::Buffer;
using backend::DataType;
using backend::Device;
using backend::Tensor;
using backend::Transpose;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

std::unique_ptr<Device> bfloat16_device() {
    return backend::cuda_module().make_device(0, DataType::kBfloat16);
}

TEST(CudaDevice, SaysWhatItIs) {
    EXPECT_THAT(bfloat16_device()->name(), StartsWith("cuda:0 "));
}

TEST(CudaDevice, RefusesANumberThatIsNotThere) {
    const int count = backend::cuda_module().device_count();
    EXPECT_THAT([&] { backend::cuda_module().make_device(count, DataType::kBfloat16); },
                ThrowsMessage<backend::BackendError>(HasSubstr("no CUDA device: number " + std::to_string(count))));
}

TEST(CudaDevice, CountsMemoryAndGivesItBack) {
    const auto device = bfloat16_device();
    const auto before = device->memory_used();
    {
        const Buffer buffer = device->allocate(scenarios::Bytes(10 << 20));
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 256, 0u);
        EXPECT_GE(device->memory_used().count(), before.count() + (10 << 20));
    }
    EXPECT_EQ(device->memory_used(), before);
}

TEST(CudaDevice, SaysHowMuchMemoryWasMissingAndGoesOn) {
    const auto device = bfloat16_device();
    EXPECT_THAT([&] { device->allocate(scenarios::Bytes(4 * device->memory_total().count())); },
                ThrowsMessage<backend::BackendError>(HasSubstr("were asked for")));
    EXPECT_NE(device->allocate(scenarios::Bytes(1 << 20)).data(), nullptr);
}

TEST(CudaDevice, MarksCountOnFromWhenItWasMade) {
    const auto made = std::chrono::steady_clock::now();
    const auto device = bfloat16_device();
    const Buffer buffer = device->allocate(DataType::kFloat32, 64 << 20);
    const Tensor tensor = buffer.tensor(DataType::kFloat32, 1, 64 << 20);
    scenarios::Duration last;
    for (int round = 0; round < 5; ++round) {
        const backend::Mark begin = device->mark();
        for (int i = 0; i < 200; ++i) device->operations().fill(tensor, 1.0);
        const backend::Mark end = device->mark();
        EXPECT_GE(device->time_of(begin), last);
        EXPECT_GT(device->time_of(end), device->time_of(begin));
        last = device->time_of(end);
        device->forget_marks();
    }
    const auto passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - made).count();
    EXPECT_LT(last.s(), passed);
}

/// What `run` left in `result`, twice.
void expect_same_bits(Device& device, const Tensor& result, const std::function<void()>& run) {
    std::vector<std::vector<char>> runs;
    for (int i = 0; i < 2; ++i) {
        device.operations().fill(result, 0.0);
        run();
        runs.emplace_back(static_cast<std::size_t>(result.bytes()));
        device.to_host(result, runs.back().data());
    }
    EXPECT_EQ(runs[0], runs[1]);
}

TEST(CudaDevice, GivesTheSameBitsEveryTime) {
    const auto device = bfloat16_device();
    auto& operations = device->operations();
    RandomValues random(3);
    const std::int64_t tokens = 2048, hidden = 768;
    const auto working = [&](const Values& values) { return Operand(*device, DataType::kBfloat16, values, 0); };
    const auto wide = [&](std::int64_t rows, std::int64_t columns) {
        return Operand(*device, DataType::kFloat32, Values(rows, columns), 0);
    };
    const Operand x = working(random.normal(1.0, tokens, hidden)), dy = working(random.normal(1.0, tokens, hidden)),
                  gamma = working(random.normal(1.0, 1, hidden));
    Operand dw = wide(hidden, hidden), dgamma = wide(1, hidden), dbeta = wide(1, hidden), mean = wide(1, tokens),
            rstd = wide(1, tokens), dx = working(Values(tokens, hidden)), y = working(Values(tokens, hidden));
    expect_same_bits(*device, dw.tensor(),
                     [&] { operations.gemm(Transpose::kYes, Transpose::kNo, 1.0, dy, x, 1.0, dw); });
    operations.layer_norm(x, gamma, gamma, 1e-5, y, mean, rstd);
    expect_same_bits(*device, dgamma.tensor(),
                     [&] { operations.layer_norm_gradient(dy, x, gamma, mean, rstd, dx, dgamma, dbeta); });
    const Operand ids(*device, DataType::kInt32, random.whole(0, 99, 1, tokens), 0);
    Operand dtable = wide(100, hidden);
    expect_same_bits(*device, dtable.tensor(), [&] { operations.embedding_gradient(ids, dy, 0, dtable); });

    const backend::AttentionShape shape{2, 1024, 12, 12, 64};
    Operand log_sums = wide(24, 1024), dq = working(Values(tokens, hidden)), dk = working(Values(tokens, hidden)),
            dv = working(Values(tokens, hidden));
    operations.attention(shape, x, dy, x, y, log_sums);
    expect_same_bits(*device, dk.tensor(),
                     [&] { operations.attention_gradient(shape, dy, x, dy, x, y, log_sums, dq, dk, dv); });
}

/// The kernels over tensor cores on the shapes of real models, against those in float32.
TEST(CudaDevice, AttentionOfLongSequencesAgreesInBothTypes) {
    const auto narrow = bfloat16_device();
    const auto wide = backend::cuda_module().make_device(0, DataType::kFloat32);
    RandomValues random(4);
    for (const backend::AttentionShape& shape :
         {backend::AttentionShape{2, 1024, 4, 4, 64}, backend::AttentionShape{1, 2000, 8, 2, 128}}) {
        const std::int64_t rows = shape.batch * shape.sequence, columns = shape.heads * shape.head_dim,
                           kv_columns = shape.kv_heads * shape.head_dim;
        const Values q = random.normal(1.0, rows, columns), k = random.normal(1.0, rows, kv_columns),
                     v = random.normal(1.0, rows, kv_columns), dout = random.normal(1.0, rows, columns);
        const auto results = [&](Device& device) {
            const auto operand = [&](const Values& values) {
                return Operand(device, device.working_type(), values, 0);
            };
            const Operand on_q = operand(q), on_k = operand(k), on_v = operand(v), on_dout = operand(dout);
            Operand out = operand(Values(rows, columns)), dq = operand(Values(rows, columns)),
                    dk = operand(Values(rows, kv_columns)), dv = operand(Values(rows, kv_columns)),
                    log_sums(device, DataType::kFloat32, Values(shape.batch * shape.heads, shape.sequence), 0);
            device.operations().attention(shape, on_q, on_k, on_v, out, log_sums);
            device.operations().attention_gradient(shape, on_dout, on_q, on_k, on_v, out, log_sums, dq, dk, dv);
            return std::vector<Values>{out.read(), log_sums.read(), dq.read(), dk.read(), dv.read()};
        };
        const auto actual = results(*narrow), expected = results(*wide);
        for (std::size_t i = 0; i < actual.size(); ++i)
            EXPECT_LE(relative_error(actual[i], expected[i]), 1e-2)
                << "result " << i << ", heads of " << shape.head_dim;
    }
}

TEST(CudaDevice, HasSensors) {
    const auto sensors = backend::open_gpu_sensors();
    if (sensors == nullptr) GTEST_SKIP() << "this machine has no NVML";
    const int gpu = sensors->find(backend::cuda_module().pci_bus_id(0));
    ASSERT_GE(gpu, 0);
    const backend::GpuReading reading = sensors->read(gpu);
    EXPECT_GT(reading.temperature_c.value_or(50.0), 5.0);
    EXPECT_LT(reading.temperature_c.value_or(50.0), 120.0);
    EXPECT_GT(reading.sm_clock_mhz.value_or(1000.0), 50.0);
    EXPECT_GT(reading.memory_total_bytes.value_or(1), 0);
}

TEST(CudaOccupier, SlowsProductsDownByAboutItsShare) {
    const auto device = bfloat16_device();
    const auto occupier = backend::cuda_module().make_occupier(*device);
    const std::int64_t side = 4096;
    const Buffer a = device->allocate(DataType::kBfloat16, side * side),
                 b = device->allocate(DataType::kBfloat16, side * side),
                 c = device->allocate(DataType::kBfloat16, side * side);
    const auto tensor = [&](const Buffer& of) { return of.tensor(DataType::kBfloat16, side, side); };
    device->operations().fill(tensor(a), 0.01);
    device->operations().fill(tensor(b), 0.01);
    const auto time = [&] {
        const backend::Mark begin = device->mark();
        for (int i = 0; i < 50; ++i)
            device->operations().gemm(Transpose::kNo, Transpose::kNo, 1.0, tensor(a), tensor(b), 0.0, tensor(c));
        const backend::Mark end = device->mark();
        const auto passed = device->time_of(end) - device->time_of(begin);
        device->forget_marks();
        return passed;
    };
    time();
    const auto alone = time();
    occupier->occupy(0.5, scenarios::Duration::seconds(5.0));
    const auto beside = time();
    occupier->release();
    const auto again = time();
    RecordProperty("slowdown_percent", static_cast<int>(100 * (beside / alone)));
    EXPECT_GT(beside / alone, 1.5);
    EXPECT_LT(beside / alone, 4.0);
    EXPECT_LT(again / alone, 1.3);
    EXPECT_THROW(occupier->occupy(1.0, scenarios::Duration::seconds(1.0)), std::invalid_argument);
}

}  // namespace
}  // namespace headway::tests
