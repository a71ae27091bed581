#include "tests/backend/cuda/emulation/emulator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "backend/cuda/kernels/dialect.cuh"
#include "backend/cuda/kernels/tensor_core.cuh"

/// The emulator finds what it is there to find.
namespace headway::tests {
namespace {

using backend::cuda::Bf16;
using backend::cuda::Geometry;

Geometry one_block(unsigned threads, std::size_t shared_bytes = 0) {
    Geometry geometry;
    geometry.block = {threads, 1, 1};
    geometry.shared_bytes = shared_bytes;
    return geometry;
}

void run(const Geometry& geometry, const std::function<void()>& thread) {
    backend::cuda::emulated_launch("test", geometry, nullptr, thread);
}

TEST(CudaEmulator, RunsEveryThreadOfEveryBlock) {
    Geometry geometry = one_block(64);
    geometry.grid = {3, 2, 2};
    std::vector<int> seen(3 * 2 * 2 * 64);
    run(geometry, [&] { ++seen[((blockIdx.z * 2 + blockIdx.y) * 3 + blockIdx.x) * 64 + threadIdx.x]; });
    EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
}

TEST(CudaEmulator, BarriersAndShufflesMove) {
    std::vector<float> sums(96), others(96);
    run(one_block(96, 96 * sizeof(float)), [&] {
        auto* const shared = reinterpret_cast<float*>(backend::cuda::dynamic_shared());
        const int thread = static_cast<int>(threadIdx.x);
        shared[thread] = static_cast<float>(thread);
        __syncthreads();
        others[static_cast<std::size_t>(thread)] = shared[95 - thread];
        sums[static_cast<std::size_t>(thread)] = backend::cuda::warp_sum(1.0f);
    });
    for (int i = 0; i < 96; ++i) {
        EXPECT_EQ(others[static_cast<std::size_t>(i)], static_cast<float>(95 - i));
        EXPECT_EQ(sums[static_cast<std::size_t>(i)], 32.0f);
    }
}

TEST(CudaEmulator, FillsSharedMemoryWithNoNumbers) {
    bool nan = false;
    run(one_block(32, 64), [&] { nan = std::isnan(*reinterpret_cast<float*>(backend::cuda::dynamic_shared())); });
    EXPECT_TRUE(nan);
}

class CudaEmulatorDeathTest : public ::testing::Test {
  protected:
    void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }  // by a process of its own
};

TEST_F(CudaEmulatorDeathTest, EndsAKernelWhoseThreadsDoNotMeet) {
    EXPECT_DEATH(run(one_block(64),
                     [] {
                         if (threadIdx.x < 32) __syncthreads();
                     }),
                 "a thread returned while others wait|some threads have left");
    EXPECT_DEATH(run(one_block(32),
                     [] {
                         if (threadIdx.x == 3) return;
                         backend::cuda::warp_sum(1.0f);
                     }),
                 "lane returned|some lanes have left");
}

TEST_F(CudaEmulatorDeathTest, EndsAKernelThatWritesPastItsSharedMemory) {
    EXPECT_DEATH(run(one_block(32, 64), [] { backend::cuda::dynamic_shared()[64] = 1; }), "past its shared memory");
}

TEST_F(CudaEmulatorDeathTest, EndsAKernelThatDoesNotWaitForItsCopies) {
    alignas(16) static Bf16 source[8] = {};
    EXPECT_DEATH(run(one_block(32, 16),
                     [] {
                         auto* const to = reinterpret_cast<Bf16*>(backend::cuda::dynamic_shared());
                         backend::cuda::copy_async(to, source, true);
                         backend::cuda::commit_copies();
                     }),
                 "never waited for");
}

/// Row-major 16 x 16 by 16 x 8: every fragment loaded element by element as the PTX manual places it.
TEST(CudaEmulator, MultipliesFragmentsAsThePtxManualPlacesThem) {
    float a[16][16], b[16][8], c[16][8] = {};
    for (int i = 0; i < 16; ++i)
        for (int k = 0; k < 16; ++k) a[i][k] = static_cast<float>((3 * i + 5 * k) % 7 - 3);
    for (int k = 0; k < 16; ++k)
        for (int j = 0; j < 8; ++j) b[k][j] = static_cast<float>((k + 2 * j) % 5 - 2);
    run(one_block(32), [&] {
        const int lane = static_cast<int>(threadIdx.x), group = lane >> 2, within = lane % 4;
        std::uint32_t of_a[4], of_b[2];
        float of_c[4] = {};
        for (int r = 0; r < 4; ++r) {
            float pair[2];
            for (int e = 0; e < 2; ++e) {
                const int i = 2 * r + e;  // the manual's index of an element
                const int row = i < 2 || (i >= 4 && i < 6) ? group : group + 8;
                pair[e] = a[row][within * 2 + (i & 1) + (i >= 4 ? 8 : 0)];
            }
            of_a[r] = backend::cuda::packed(pair[0], pair[1]);
        }
        for (int r = 0; r < 2; ++r)
            of_b[r] = backend::cuda::packed(b[within * 2 + 8 * r][group], b[within * 2 + 1 + 8 * r][group]);
        backend::cuda::multiply_add(of_c, of_a, of_b[0], of_b[1]);
        for (int i = 0; i < 4; ++i) c[i < 2 ? group : group + 8][within * 2 + (i & 1)] = of_c[i];
    });
    for (int i = 0; i < 16; ++i)
        for (int j = 0; j < 8; ++j) {
            float expected = 0.0f;
            for (int k = 0; k < 16; ++k) expected += a[i][k] * b[k][j];
            EXPECT_EQ(c[i][j], expected) << i << ", " << j;
        }
}

}  // namespace
}  // namespace headway::tests
