#include "scenarios/costs/kernel.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace headway::scenarios {

namespace {

constexpr double kPartialBytes = 4.0;  ///< partial results of a split inner dimension are fp32
constexpr double kLeastSplitDepth = 1024.0;

double memory_seconds(double bytes, const GpuType& gpu) {
    return bytes / (gpu.memory_bandwidth.value * gpu.memory_efficiency);
}

struct MainLoop {
    double seconds;
    double partial_seconds;
};

MainLoop best_main_loop(const GemmShape& shape, const GpuType& gpu, const GemmPace& pace) {
    const double side = gpu.gemm_tile.value_or(0);
    const double tiles_of_type[][2] = {{side > 0.0 ? side : 256.0, side > 0.0 ? side : 128.0},
                                       {side > 0.0 ? side : 128.0, side > 0.0 ? side : 256.0}};
    MainLoop best{std::numeric_limits<double>::infinity(), 0.0};
    for (const auto& tile : tiles_of_type) {
        const double tiles = shape.batch * std::ceil(shape.rows / tile[0]) * std::ceil(shape.columns / tile[1]);
        for (const int split : {1, 2, 4}) {
            const double depth = shape.depth / split;
            if (split > 1 && depth < kLeastSplitDepth) break;
            const double filled = tiles * split / gpu.sm_count;
            const double waves =
                gpu.wave_quantisation * std::ceil(filled) + (1.0 - gpu.wave_quantisation) * std::max(filled, 1.0);
            const double seconds =
                waves * 2.0 * tile[0] * tile[1] * (depth + pace.depth_lost) * gpu.sm_count / pace.flops_per_second;
            const double partial =
                split == 1
                    ? 0.0
                    : memory_seconds(shape.batch * shape.rows * shape.columns * kPartialBytes * (split + 1), gpu);
            if (seconds + partial < best.seconds + best.partial_seconds) best = {seconds, partial};
        }
    }
    return best;
}

WorkSeconds fused_attention(double flops, double efficiency, FlopsPerSecond peak, Duration gap) {
    return {.compute = flops / (peak.value * efficiency), .fixed = gap.s()};
}

}  // namespace

GemmPace half_pace(const GpuType& gpu, double efficiency) {
    return {gpu.peak_half.value * gpu.gemm_efficiency * efficiency, 2.0, gpu.gemm_depth_lost};
}

GemmPace fp8_pace(const GpuType& gpu) {
    if (gpu.peak_fp8.value <= 0.0) throw std::invalid_argument(gpu.name + " has no fp8 tensor cores");
    return {gpu.peak_fp8.value * gpu.fp8_gemm_efficiency, 1.0, gpu.gemm_depth_lost};
}

FlopsPerSecond working_peak(const GpuType& gpu, Precision precision) {
    if (precision != Precision::kFp32) return gpu.peak_half;
    if (!gpu.peak_single) throw std::invalid_argument("no single-precision peak is known of " + gpu.name);
    return *gpu.peak_single;
}

GemmPace working_pace(const GpuType& gpu, Precision precision, double efficiency) {
    if (precision != Precision::kFp32) return half_pace(gpu, efficiency);
    const auto bytes = static_cast<double>(bytes_of_element(precision));
    return {working_peak(gpu, precision).value * gpu.gemm_efficiency * efficiency, bytes, gpu.gemm_depth_lost, bytes};
}

WorkSeconds gemm_work(const GemmShape& shape, const GpuType& gpu, const GemmPace& pace, Duration gap) {
    const MainLoop loop = best_main_loop(shape, gpu, pace);
    const double operands =
        memory_seconds(shape.batch * (shape.rows + shape.columns) * shape.depth * pace.operand_bytes, gpu);
    const double results = memory_seconds(shape.batch * shape.rows * shape.columns * pace.result_bytes, gpu);
    WorkSeconds work{.memory = results, .fixed = gap.s()};
    if (loop.seconds + loop.partial_seconds >= operands) {
        work.compute = loop.seconds;
        work.memory += loop.partial_seconds;
    } else {
        work.memory += operands;
    }
    return work;
}

WorkSeconds streaming_work(double bytes, int kernels, const GpuType& gpu, Duration gap) {
    return {.memory = memory_seconds(bytes, gpu), .fixed = gap.s() * kernels};
}

WorkSeconds fused_attention_forward(double scores, double head_dim, const GpuType& gpu, Precision precision,
                                    Duration gap) {
    return fused_attention(2.0 * scores * head_dim, gpu.attention_forward_efficiency, working_peak(gpu, precision),
                           gap);
}

WorkSeconds fused_attention_backward(double scores, double head_dim, const GpuType& gpu, Precision precision,
                                     Duration gap) {
    return fused_attention(5.0 * scores * head_dim, gpu.attention_backward_efficiency, working_peak(gpu, precision),
                           gap);
}

}  // namespace headway::scenarios
