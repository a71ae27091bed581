#include "tests/benchmark/host_speed.h"

#include <cblas.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <random>

#include "backend/host/host_device.h"
#include "backend/host/kernels/peak.h"

namespace headway::benchmarks {

namespace {

using backend::DataType;
using backend::Tensor;
using backend::Transpose;

constexpr double kLeastRatio = 0.95;

double gemm_clock_s() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <typename Call>
double seconds_of_calls(int calls, Call call) {
    const double start = gemm_clock_s();
    for (int i = 0; i < calls; ++i) call();
    return (gemm_clock_s() - start) / calls;
}

/// The operands of one shape, with random values.
class GemmOperands {
  public:
    explicit GemmOperands(const GemmShape& shape)
        : shape_(shape),
          a_(tensor(shape.transpose_a ? shape.inner : shape.rows, shape.transpose_a ? shape.rows : shape.inner)),
          b_(tensor(shape.transpose_b ? shape.columns : shape.inner, shape.transpose_b ? shape.inner : shape.columns)),
          c_(tensor(shape.rows, shape.columns)) {}

    void by_device() {
        device_->operations().gemm(shape_.transpose_a ? Transpose::kYes : Transpose::kNo,
                                   shape_.transpose_b ? Transpose::kYes : Transpose::kNo, 1.0, a_, b_, shape_.beta, c_);
    }
    void by_blas() {
        const auto number = [](std::int64_t value) { return static_cast<int>(value); };
        cblas_sgemm(CblasRowMajor, shape_.transpose_a ? CblasTrans : CblasNoTrans,
                    shape_.transpose_b ? CblasTrans : CblasNoTrans, number(shape_.rows), number(shape_.columns),
                    number(shape_.inner), 1.0f, static_cast<const float*>(a_.data), number(a_.stride),
                    static_cast<const float*>(b_.data), number(b_.stride), static_cast<float>(shape_.beta),
                    static_cast<float*>(c_.data), number(c_.stride));
    }

  private:
    Tensor tensor(std::int64_t rows, std::int64_t columns) {
        std::vector<float> values(static_cast<std::size_t>(rows * columns));
        std::uniform_real_distribution<float> distribution(-0.5f, 0.5f);
        for (float& value : values) value = distribution(random_);
        buffers_.push_back(device_->allocate(DataType::kFloat32, rows * columns));
        const Tensor made = buffers_.back().tensor(DataType::kFloat32, rows, columns);
        device_->from_host(values.data(), made);
        return made;
    }

    GemmShape shape_;
    std::mt19937 random_{1};
    std::unique_ptr<backend::Device> device_ = backend::make_host_device();
    std::vector<backend::Buffer> buffers_;
    Tensor a_, b_, c_;
};

double median_ratio(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

}  // namespace

std::vector<GemmShape> gemm_shapes() {
    std::vector<GemmShape> shapes;
    for (const std::int64_t edge : {256, 512, 1024})
        shapes.push_back({std::to_string(edge) + " cube", false, false, edge, edge, edge, 0.0});
    constexpr std::int64_t kTokens = 256;
    const auto layer = [&](const std::string& name, std::int64_t in, std::int64_t out) {
        shapes.push_back({name + " forward", false, true, kTokens, out, in, 0.0});
        shapes.push_back({name + " dX", false, false, kTokens, in, out, 0.0});
        shapes.push_back({name + " dW", true, false, out, in, kTokens, 1.0});
    };
    for (const std::int64_t hidden : {256, 768}) {
        const std::string width = " " + std::to_string(hidden);
        layer("qkv" + width, hidden, 3 * hidden);
        layer("projection" + width, hidden, hidden);
        layer("MLP up" + width, hidden, 4 * hidden);
        layer("MLP down" + width, 4 * hidden, hidden);
    }
    layer("head 256, V 8192", 256, 8192);
    return shapes;
}

GemmSpeed gemm_speed(const GemmShape& shape) {
    constexpr int kRounds = 9;
    GemmOperands operands(shape);
    operands.by_device();  // sets the BLAS to one thread, touches the memory
    const int calls = std::max(1, static_cast<int>(1e8 / shape.operations()));
    std::vector<double> ratios;
    double device = 1e9, blas = 1e9;
    for (int round = 0; round < kRounds; ++round) {
        const bool device_first = round % 2 == 0;
        const auto by_device = [&] { return seconds_of_calls(calls, [&] { operands.by_device(); }); };
        const double early = device_first ? by_device() : 0.0;
        const double blas_now = seconds_of_calls(calls, [&] { operands.by_blas(); });
        const double device_now = device_first ? early : by_device();
        ratios.push_back(blas_now / device_now);
        device = std::min(device, device_now);
        blas = std::min(blas, blas_now);
    }
    return {1e-9 * shape.operations() / device, 1e-9 * shape.operations() / blas, median_ratio(ratios)};
}

double peak_gflops() {
    double best = 0.0;
    for (int round = 0; round < 5; ++round) {
        double operations = 0.0;
        const double seconds =
            seconds_of_calls(1, [&] { operations = backend::host::multiply_adds_in_registers(1'000'000); });
        best = std::max(best, 1e-9 * operations / seconds);
    }
    return best;
}

bool print_host_gemm() {
    std::printf("host GEMM, GFLOP/s of one thread (multiply-adds in registers: %.0f)  device   BLAS  ratio\n",
                peak_gflops());
    bool kept = true;
    for (const GemmShape& shape : gemm_shapes()) {
        GemmSpeed best;
        for (int attempt = 0; attempt < 3 && best.ratio < kLeastRatio; ++attempt)
            if (const GemmSpeed speed = gemm_speed(shape); speed.ratio > best.ratio) best = speed;
        const bool missed = best.ratio < kLeastRatio;
        char size[48];
        std::snprintf(size, sizeof size, "%lld x %lld x %lld", static_cast<long long>(shape.rows),
                      static_cast<long long>(shape.columns), static_cast<long long>(shape.inner));
        std::printf("  %-28s %-36s %8.1f %6.1f %6.2f%s\n", shape.name.c_str(), size, best.device_gflops,
                    best.blas_gflops, best.ratio, missed ? "  MISSED (at least 0.95)" : "");
        kept = kept && !missed;
    }
    return kept;
}

}  // namespace headway::benchmarks
