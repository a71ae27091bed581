#include <benchmark/benchmark.h>

#include <memory>

#include "backend/host/host_device.h"
#include "tests/benchmark/host_training.h"

/// Kernels of the host at the size of a small GPT-2 step: 4 sequences of 64 tokens, hidden 256, 4 heads, 8,192 tokens
/// of vocabulary. One thread; `--host` prints the matrix products beside the BLAS.
namespace headway::benchmarks {
namespace {

using backend::DataType;
using backend::Tensor;

constexpr std::int64_t kTokens = 256, kHidden = 256, kVocabulary = 8192;

class HostTensors {
  public:
    Tensor of(std::int64_t rows, std::int64_t columns) {
        buffers_.push_back(device_->allocate(DataType::kFloat32, rows * columns));
        const Tensor tensor = buffers_.back().tensor(DataType::kFloat32, rows, columns);
        device_->operations().fill(tensor, 0.01);
        return tensor;
    }
    Tensor tokens(std::int64_t count) {
        buffers_.push_back(device_->allocate(DataType::kInt32, count));
        const Tensor tensor = buffers_.back().tensor(DataType::kInt32, 1, count);
        device_->operations().fill(tensor, 5.0);
        return tensor;
    }
    backend::Operations& operations() { return device_->operations(); }

  private:
    std::unique_ptr<backend::Device> device_ = backend::make_host_device();
    std::vector<backend::Buffer> buffers_;
};

void host_attention(benchmark::State& state) {
    HostTensors host;
    const Tensor qkv = host.of(kTokens, 3 * kHidden), out = host.of(kTokens, kHidden), log_sums = host.of(16, 64);
    for (auto _ : state)
        host.operations().attention({4, 64, 4, 4, 64}, qkv.column_range(0, kHidden), qkv.column_range(256, kHidden),
                                    qkv.column_range(512, kHidden), out, log_sums);
}
BENCHMARK(host_attention)->Unit(benchmark::kMicrosecond);

void host_attention_gradient(benchmark::State& state) {
    HostTensors host;
    const Tensor qkv = host.of(kTokens, 3 * kHidden), out = host.of(kTokens, kHidden), log_sums = host.of(16, 64);
    const Tensor dqkv = host.of(kTokens, 3 * kHidden), dout = host.of(kTokens, kHidden);
    const auto part = [](const Tensor& of, std::int64_t index) { return of.column_range(index * kHidden, kHidden); };
    for (auto _ : state)
        host.operations().attention_gradient({4, 64, 4, 4, 64}, dout, part(qkv, 0), part(qkv, 1), part(qkv, 2), out,
                                             log_sums, part(dqkv, 0), part(dqkv, 1), part(dqkv, 2));
}
BENCHMARK(host_attention_gradient)->Unit(benchmark::kMicrosecond);

void host_layer_norm(benchmark::State& state) {
    HostTensors host;
    const Tensor x = host.of(kTokens, kHidden), y = host.of(kTokens, kHidden), gamma = host.of(1, kHidden);
    const Tensor mean = host.of(1, kTokens), rstd = host.of(1, kTokens);
    for (auto _ : state) host.operations().layer_norm(x, gamma, gamma, 1e-5, y, mean, rstd);
}
BENCHMARK(host_layer_norm)->Unit(benchmark::kMicrosecond);

void host_gelu(benchmark::State& state) {
    HostTensors host;
    const Tensor x = host.of(kTokens, 4 * kHidden), y = host.of(kTokens, 4 * kHidden);
    for (auto _ : state) host.operations().gelu(x, y);
}
BENCHMARK(host_gelu)->Unit(benchmark::kMicrosecond);

void host_cross_entropy(benchmark::State& state) {
    HostTensors host;
    const Tensor logits = host.of(kTokens, kVocabulary), maxima = host.of(1, kTokens), sums = host.of(1, kTokens);
    const Tensor targets = host.tokens(kTokens), target_logits = host.of(1, kTokens), losses = host.of(1, kTokens);
    for (auto _ : state) {
        host.operations().row_maxima(logits, maxima);
        host.operations().exponential_sums(logits, maxima, targets, 0, sums, target_logits);
        host.operations().cross_entropy(logits, maxima, sums, targets, target_logits, 0, 1.0 / 256.0, losses);
    }
}
BENCHMARK(host_cross_entropy)->Unit(benchmark::kMicrosecond);

void host_adamw(benchmark::State& state) {
    HostTensors host;
    constexpr std::int64_t kParameters = 5'273'088;
    const Tensor gradient = host.of(1, kParameters), parameters = host.of(1, kParameters);
    const Tensor first = host.of(1, kParameters), second = host.of(1, kParameters);
    backend::AdamW settings;
    for (auto _ : state) {
        host.operations().adamw(settings, gradient, parameters, first, second);
        ++settings.step;
    }
    state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * kParameters * 28);
}
BENCHMARK(host_adamw)->Unit(benchmark::kMicrosecond);

void host_training_step(benchmark::State& state) {
    HostTraining training;
    for (auto _ : state) benchmark::DoNotOptimize(training.step());
    state.counters["FLOP/s"] =
        benchmark::Counter(training.operations_of_step(), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(host_training_step)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace headway::benchmarks
