#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// Speed of the host's kernels, on one thread, by CPU time.
namespace headway::benchmarks {

/// A product of the training step of a GPT-2 model, or a square one: c [rows x columns] = op(a) op(b), `inner` deep.
struct GemmShape {
    std::string name;
    bool transpose_a = false;
    bool transpose_b = false;
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t inner = 0;
    double beta = 0.0;

    double operations() const { return 2.0 * static_cast<double>(rows * columns * inner); }
};
/// Of 256 tokens: forward, gradient of the activations (dX) and of the weights (dW).
std::vector<GemmShape> gemm_shapes();

/// Through Operations::gemm of the host device, and by a direct call of the packaged BLAS over the same memory.
struct GemmSpeed {
    double device_gflops = 0.0;
    double blas_gflops = 0.0;
    double ratio = 0.0;  ///< device over BLAS: the median of rounds that measure one after the other
};
GemmSpeed gemm_speed(const GemmShape& shape);

/// Multiply-adds in registers: what a core reaches now, best of several rounds.
double peak_gflops();

/// Prints every shape with both speeds. False when a ratio stays below 0.95 in three tries.
bool print_host_gemm();

}  // namespace headway::benchmarks
