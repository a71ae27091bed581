#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/calibration/timings.h"
#include "backend/cuda/cuda_module.h"
#include "scenarios/costs/parameters.h"
#include "tests/device/one_process.h"

/// How fast the device is. Figures are lines "FIGURE name value unit"; what is asserted is only that they are possible.
namespace headway::tests {
namespace {

using backend::AttentionShape;
using backend::Buffer;
using backend::DataType;
using backend::Device;
using backend::Tensor;
using backend::Transpose;
using scenarios::Duration;

void figure(const std::string& name, double value, const char* unit) {
    std::printf("FIGURE %s %.4g %s\n", name.c_str(), value, unit);
    EXPECT_GT(value, 0.0) << name;
}

/// Dense bfloat16 FLOP/s of the data sheet (NVIDIA H100/H200 SXM and A100); 0 for others.
double peak_of(const std::string& name) {
    for (const auto& [part, peak] : std::vector<std::pair<const char*, double>>{{"H200", 989e12},
                                                                                {"H100 80GB HBM3", 989e12},
                                                                                {"H100 NVL", 835e12},
                                                                                {"H100 PCIe", 756e12},
                                                                                {"A100", 312e12}})
        if (name.find(part) != std::string::npos) return peak;
    return 0.0;
}

class DeviceFigures : public ::testing::Test {
  protected:
    DeviceFigures() : device_(backend::cuda_module().make_device(0, DataType::kBfloat16)) {}

    Tensor tensor(DataType type, std::int64_t rows, std::int64_t columns, double value) {
        owned_.push_back(device_->allocate(type, rows * columns));
        const Tensor made = owned_.back().tensor(type, rows, columns);
        device_->operations().fill(made, value);
        return made;
    }
    /// Of one call: median of rounds of about 5 ms.
    template <typename Call>
    Duration time(const Call& call) {
        const auto of_calls = [&](int calls) {
            const backend::Mark begin = device_->mark();
            for (int i = 0; i < calls; ++i) call();
            const backend::Mark end = device_->mark();
            const Duration passed = device_->time_of(end) - device_->time_of(begin);
            device_->forget_marks();
            return passed;
        };
        of_calls(2);
        const Duration one = of_calls(3).scaled(1.0 / 3.0);
        const int calls = static_cast<int>(std::clamp(Duration::milliseconds(5.0) / one, 1.0, 2000.0));
        std::vector<Duration> rounds;
        for (int round = 0; round < 9; ++round) rounds.push_back(of_calls(calls).scaled(1.0 / calls));
        std::nth_element(rounds.begin(), rounds.begin() + 4, rounds.end());
        return rounds[4];
    }

    std::unique_ptr<Device> device_;
    std::vector<Buffer> owned_;
};

TEST_F(DeviceFigures, Products) {
    for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{
             {8192, 8192, 8192}, {16384, 2304, 768}, {16384, 3072, 768}, {16384, 50304, 768}}) {
        const Tensor a = tensor(DataType::kBfloat16, m, k, 0.01), b = tensor(DataType::kBfloat16, n, k, 0.02),
                     c = tensor(DataType::kBfloat16, m, n, 0.0);
        const Duration passed = time([&, &a = a, &b = b, &c = c] {
            device_->operations().gemm(Transpose::kNo, Transpose::kYes, 1.0, a, b, 0.0, c);
        });
        const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
        figure("gemm_" + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k),
               flops / passed.s() * 1e-12, "TFLOP/s");
        owned_.clear();
    }
}

TEST_F(DeviceFigures, Attention) {
    for (const AttentionShape& shape : {AttentionShape{16, 1024, 12, 12, 64}, AttentionShape{2, 4096, 32, 8, 128}}) {
        const std::int64_t rows = shape.batch * shape.sequence, wide = shape.heads * shape.head_dim,
                           narrow = shape.kv_heads * shape.head_dim;
        const auto of = [&](std::int64_t columns, double value) {
            return tensor(DataType::kBfloat16, rows, columns, value);
        };
        const Tensor q = of(wide, 0.1), k = of(narrow, 0.2), v = of(narrow, 0.3), out = of(wide, 0.0),
                     dout = of(wide, 0.1), dq = of(wide, 0.0), dk = of(narrow, 0.0), dv = of(narrow, 0.0),
                     sums = tensor(DataType::kFloat32, shape.batch * shape.heads, shape.sequence, 0.0);
        // Two products forward, five backward, over the half of the scores that is not masked.
        const double product = static_cast<double>(shape.batch * shape.heads * shape.head_dim) *
                               static_cast<double>(shape.sequence) * static_cast<double>(shape.sequence);
        const Duration forward = time([&] { device_->operations().attention(shape, q, k, v, out, sums); });
        const Duration backward =
            time([&] { device_->operations().attention_gradient(shape, dout, q, k, v, out, sums, dq, dk, dv); });
        const std::string at = std::to_string(shape.sequence) + "x" + std::to_string(shape.head_dim);
        figure("attention_" + at, 2.0 * product / forward.s() * 1e-12, "TFLOP/s");
        figure("attention_gradient_" + at, 5.0 * product / backward.s() * 1e-12, "TFLOP/s");
        owned_.clear();
    }
}

TEST_F(DeviceFigures, MemoryBoundKernels) {
    const std::int64_t rows = 16384, columns = 768, vocabulary = 50304;
    const auto working = [&](std::int64_t r, std::int64_t c) { return tensor(DataType::kBfloat16, r, c, 0.5); };
    const auto single = [&](std::int64_t r, std::int64_t c) { return tensor(DataType::kFloat32, r, c, 0.5); };
    const Tensor x = working(rows, columns), y = working(rows, columns), dy = working(rows, columns),
                 gamma = working(1, columns), mean = single(1, rows), rstd = single(1, rows),
                 dgamma = single(1, columns), dbeta = single(1, columns);
    auto& operations = device_->operations();
    const auto rate = [&](const char* name, double bytes, const Duration& passed) {
        figure(name, bytes / passed.s() * 1e-9, "GB/s");
    };
    const auto matrix = static_cast<double>(x.bytes());
    rate("layer_norm", 2 * matrix, time([&] { operations.layer_norm(x, gamma, gamma, 1e-5, y, mean, rstd); }));
    rate("layer_norm_gradient", 6 * matrix,
         time([&] { operations.layer_norm_gradient(dy, x, gamma, mean, rstd, y, dgamma, dbeta); }));
    rate("gelu", 2 * matrix, time([&] { operations.gelu(x, y); }));
    rate("bias_gradient", matrix, time([&] { operations.bias_gradient(dy, dbeta); }));
    const std::int64_t parameters = 124'000'000 / 8 * 8;
    const Tensor gradient = single(1, parameters), master = single(1, parameters), first = single(1, parameters),
                 second = single(1, parameters);
    rate("adamw", 7.0 * static_cast<double>(gradient.bytes()),
         time([&] { operations.adamw({.learning_rate = 1e-4}, gradient, master, first, second); }));
    const Tensor logits = working(4096, vocabulary), maxima = single(1, 4096), sums = single(1, 4096),
                 of_targets = single(1, 4096), losses = single(1, 4096), targets = tensor(DataType::kInt32, 1, 4096, 7);
    rate("cross_entropy", 4.0 * static_cast<double>(logits.bytes()), time([&] {
             operations.row_maxima(logits, maxima);
             operations.exponential_sums(logits, maxima, targets, 0, sums, of_targets);
             operations.cross_entropy(logits, maxima, sums, targets, of_targets, 0, 1e-3, losses);
         }));
    const Tensor ids = tensor(DataType::kInt32, 1, rows, 3), table = single(vocabulary, columns);
    figure("embedding_gradient_of_one_token", time([&] { operations.embedding_gradient(ids, dy, 0, table); }).ms(),
           "ms");
}

TEST_F(DeviceFigures, TrainingStepOfGpt2) {
    scenarios::Job job;
    job.model.name = "gpt2-124m";
    job.model.layers = 12;
    job.model.hidden = 768;
    job.model.heads = job.model.kv_heads = 12;
    job.model.head_dim = 64;
    job.model.ffn = 3072;
    job.model.vocab = 50257;
    job.model.sequence_length = 1024;
    job.precision = scenarios::Precision::kBf16;
    job.micro_batch = 16;
    job.global_batch = 32;
    OneProcess control;
    const auto communicators = backend::cuda_module().make_communicators(*device_, control, {});
    const auto timing = backend::time_step(*device_, *communicators, job, 0);
    ASSERT_TRUE(timing.has_value());
    const int micro_batches = job.global_batch / job.micro_batch;
    const double step = (timing->forward + timing->backward).s() * micro_batches + timing->optimizer.s();
    figure("gpt2_124m_forward", timing->forward.ms(), "ms");
    figure("gpt2_124m_backward", timing->backward.ms(), "ms");
    figure("gpt2_124m_optimizer", timing->optimizer.ms(), "ms");
    figure("gpt2_124m_tokens", static_cast<double>(job.tokens_per_iteration()) / step, "tokens/s");
    const double flops_per_s = scenarios::model_flops(job).value / step;
    figure("gpt2_124m_model_flops", flops_per_s * 1e-12, "TFLOP/s");
    const double peak = peak_of(device_->name());
    if (peak > 0.0) figure("gpt2_124m_mfu", 100.0 * flops_per_s / peak, "%");
}

TEST_F(DeviceFigures, Calibration) {
    const backend::KernelTimings timings = backend::time_kernels(*device_, true);
    double best = 0.0;
    for (const auto& gemm : timings.gemms) best = std::max(best, gemm.shape.flops() / gemm.time.s());
    figure("calibration_shapes", static_cast<double>(timings.gemms.size() + timings.attentions.size()), "kernels");
    figure("calibration_best_gemm", best * 1e-12, "TFLOP/s");
    for (const auto& copy : timings.copies)
        figure("copy", static_cast<double>(copy.moved.count()) / copy.time.s() * 1e-9, "GB/s");
}

TEST_F(DeviceFigures, NcclCallOfOne) {
    OneProcess control;
    backend::CommunicatorOptions options;
    options.single_too = true;
    const auto maker = backend::cuda_module().make_communicators(*device_, control, options);
    const auto groups = maker->make({{"world", {0}}});
    const Tensor value = tensor(DataType::kFloat32, 1, 1024, 1.0);
    figure("nccl_all_reduce_of_one",
           time([&] { groups[0]->all_reduce(value, backend::ReduceOperation::kSum)->wait(); }).us(), "us");
}

}  // namespace
}  // namespace headway::tests
