#pragma once

#include "scenarios/costs/work_seconds.h"
#include "scenarios/language/hardware.h"
#include "scenarios/language/job.h"

/// Time of single kernels on one healthy GPU.
namespace headway::scenarios {

/// `batch` products of a rows x depth by a depth x columns matrix.
struct GemmShape {
    double rows = 1;
    double columns = 1;
    double depth = 1;
    double batch = 1;
    double flops() const { return 2.0 * batch * rows * columns * depth; }
};

/// The pace of one kind of GEMM.
struct GemmPace {
    double flops_per_second = 1;  ///< peak times the share that main loops reach
    double operand_bytes = 2;     ///< an element of the operands
    double depth_lost = 0;        ///< GpuType::gemm_depth_lost
    double result_bytes = 2;      ///< an element of the results
};

/// fp16 and bf16 (and the parts of fp8 training that stay there). `efficiency` scales the pace (unaligned rows).
GemmPace half_pace(const GpuType& gpu, double efficiency = 1.0);
/// Throws std::invalid_argument for a type without fp8.
GemmPace fp8_pace(const GpuType& gpu);
/// What a job of `precision` does outside fp8 GEMMs: fp32, or half_pace. Throws std::invalid_argument for fp32 on a
/// type without a known single-precision peak.
GemmPace working_pace(const GpuType& gpu, Precision precision, double efficiency = 1.0);
/// The peak behind working_pace.
FlopsPerSecond working_peak(const GpuType& gpu, Precision precision);

/// Tiles of 256 x 128 results (or GpuType::gemm_tile squared) go to the SMs in waves; the inner dimension is split in 2 or 4 while that is faster (each
/// part at least 1,024 deep, partial results through memory). Operands stream in behind the main loop, results are
/// stored after it: time = max(main loop, operands / bandwidth) + results / bandwidth + gap. The model of a wave is
/// that of NVIDIA's "Matrix multiplication background" guide, with one constant for what a tile loses at both ends.
WorkSeconds gemm_work(const GemmShape& shape, const GpuType& gpu, const GemmPace& pace, Duration gap);

/// Kernels that only stream `bytes` through memory, `kernels` of them.
WorkSeconds streaming_work(double bytes, int kernels, const GpuType& gpu, Duration gap);

/// Fused causal attention (Dao 2023): half of the 4 x queries x keys x head_dim operations forward, 2.5 times that
/// backward.
WorkSeconds fused_attention_forward(double scores, double head_dim, const GpuType& gpu, Precision precision,
                                    Duration gap);
WorkSeconds fused_attention_backward(double scores, double head_dim, const GpuType& gpu, Precision precision,
                                     Duration gap);

}  // namespace headway::scenarios
