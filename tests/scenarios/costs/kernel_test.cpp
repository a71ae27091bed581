#include "scenarios/costs/kernel.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/scenarios/costs/shipped_job.h"

namespace headway::scenarios {
namespace {

GpuType a100() {
    return read_gpu(shipped_catalogue(), "A100-SXM4-80GB");
}

/// No losses: one SM, peak and bandwidth reached, gaps of nothing.
GpuType ideal() {
    GpuType gpu;
    gpu.name = "ideal";
    gpu.peak_half = {1e12};
    gpu.memory_bandwidth = {1e12};
    gpu.sm_count = 1;
    return gpu;
}

double milliseconds(const GemmShape& shape) {
    const GpuType gpu = a100();
    return 1e3 * gemm_work(shape, gpu, half_pace(gpu), Duration::microseconds(2)).total();
}

TEST(Gemm, TakesPeakTimeOfFullTilesOnAnIdealGpu) {
    const GpuType gpu = ideal();
    const GemmShape shape{2560, 1280, 4096};
    const WorkSeconds work = gemm_work(shape, gpu, half_pace(gpu), Duration());
    EXPECT_NEAR(work.compute, shape.flops() / 1e12, 1e-9);
    EXPECT_NEAR(work.memory, 2560.0 * 1280 * 2 / 1e12, 1e-12);
    EXPECT_EQ(work.communication, 0.0);
}

TEST(Gemm, PaysForWholeTilesAndWholeWaves) {
    GpuType gpu = ideal();
    const double full = gemm_work({256, 128, 512}, gpu, half_pace(gpu), Duration()).compute;
    EXPECT_DOUBLE_EQ(gemm_work({129, 65, 512}, gpu, half_pace(gpu), Duration()).compute, full);
    gpu.sm_count = 4;
    gpu.wave_quantisation = 1.0;
    const double four = gemm_work({1024, 128, 512}, gpu, half_pace(gpu), Duration()).compute;
    EXPECT_DOUBLE_EQ(gemm_work({1280, 128, 512}, gpu, half_pace(gpu), Duration()).compute, 2.0 * four);
    gpu.wave_quantisation = 0.0;
    EXPECT_DOUBLE_EQ(gemm_work({1280, 128, 512}, gpu, half_pace(gpu), Duration()).compute, 1.25 * four);
}

TEST(Gemm, WithLittleReuseIsLimitedByMemory) {
    GpuType gpu = ideal();
    gpu.peak_half = {1e15};
    const WorkSeconds thin = gemm_work({256, 8192, 8192}, gpu, half_pace(gpu), Duration());
    EXPECT_EQ(thin.compute, 0.0);
    EXPECT_NEAR(thin.memory, ((256 + 8192.0) * 8192 + 256.0 * 8192) * 2 / 1e12, 1e-12);
}

TEST(Gemm, MatchesTimingsOnA100) {
    // EleutherAI/cookbook, benchmarks/sizing/sample_results: micro-batch 4, hidden 4096, sequence 2048, fp16.
    EXPECT_NEAR(milliseconds({8192, 12288, 4096}) / 3.4, 1.0, 0.07);      // 241.6 TFLOP/s
    EXPECT_NEAR(milliseconds({8192, 4096, 4096}) / 1.17, 1.0, 0.07);      // 234.9
    EXPECT_NEAR(milliseconds({8192, 16384, 4096}) / 4.56, 1.0, 0.07);     // 241.1
    EXPECT_NEAR(milliseconds({8192, 4096, 16384}) / 4.35, 1.0, 0.07);     // 252.8
    EXPECT_NEAR(milliseconds({8192, 51200, 4096}) / 13.46, 1.0, 0.07);    // 255.4
    EXPECT_NEAR(milliseconds({2048, 2048, 256, 64}) / 1.056, 1.0, 0.07);  // 130.2
    EXPECT_NEAR(milliseconds({2048, 256, 2048, 64}) / 0.628, 1.0, 0.12);  // 219.0
}

TEST(Gemm, GrowsWithEveryDimension) {
    const GemmShape base{2048, 3072, 1024};
    for (const double factor : {1.1, 1.7, 3.0, 10.0}) {
        EXPECT_GE(milliseconds({2048 * factor, 3072, 1024}), milliseconds(base));
        EXPECT_GE(milliseconds({2048, 3072 * factor, 1024}), milliseconds(base));
        EXPECT_GE(milliseconds({2048, 3072, 1024 * factor}), milliseconds(base));
        EXPECT_GE(milliseconds({2048, 3072, 1024, factor}), milliseconds(base));
    }
}

TEST(Gemm, InFp8NeedsAGpuThatHasIt) {
    EXPECT_THROW(fp8_pace(a100()), std::invalid_argument);
    const GpuType h100 = read_gpu(shipped_catalogue(), "H100-SXM5-80GB");
    const GemmShape shape{4096, 16384, 16384};
    EXPECT_LT(gemm_work(shape, h100, fp8_pace(h100), Duration()).total(),
              0.6 * gemm_work(shape, h100, half_pace(h100), Duration()).total());
}

TEST(Gemm, InSinglePrecisionNeedsAKnownPeak) {
    GpuType gpu = a100();
    EXPECT_THROW(working_pace(gpu, Precision::kFp32), std::invalid_argument);
    gpu.peak_single = FlopsPerSecond{19.5e12};
    const GemmShape shape{8192, 8192, 8192};
    const double half = gemm_work(shape, gpu, working_pace(gpu, Precision::kBf16), Duration()).compute;
    EXPECT_DOUBLE_EQ(half, gemm_work(shape, gpu, half_pace(gpu), Duration()).compute);
    const WorkSeconds single = gemm_work(shape, gpu, working_pace(gpu, Precision::kFp32), Duration());
    EXPECT_NEAR(single.compute / half, gpu.peak_half.value / 19.5e12, 1e-9);
    EXPECT_NEAR(single.memory / gemm_work(shape, gpu, half_pace(gpu), Duration()).memory, 2.0, 1e-9)
        << "results are twice as wide";
}

TEST(Streaming, TakesBytesOverBandwidthAndAGapAKernel) {
    const GpuType gpu = a100();
    const WorkSeconds work = streaming_work(2.039e9, 3, gpu, Duration::microseconds(2));
    EXPECT_NEAR(work.memory, 1e-3 / gpu.memory_efficiency, 1e-12);
    EXPECT_NEAR(work.fixed, 6e-6, 1e-12);
}

}  // namespace
}  // namespace headway::scenarios
