#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "backend/cuda/kernels/geometry.h"
#include "backend/cuda/kernels/stream.h"

/// What kernels are written in. Under nvcc it is CUDA; the tests compile the same sources with the host's compiler over
/// an emulator of blocks and warps (tests/backend/cuda/emulation), which has to be included before.
#if defined(__CUDACC__)
#include <cuda_runtime.h>

#include "backend/cuda/cuda_error.h"
#endif

namespace headway::backend::cuda {

// ---- numbers

/// The upper half of a float.
struct Bf16 {
    std::uint16_t bits;
};

__host__ __device__ inline float to_float(Bf16 value) {
    const std::uint32_t bits = static_cast<std::uint32_t>(value.bits) << 16;
    float result;
    memcpy(&result, &bits, sizeof result);
    return result;
}
__host__ __device__ inline float to_float(float value) {
    return value;
}
__host__ __device__ inline float to_float(double value) {
    return static_cast<float>(value);
}

/// Rounded to nearest, ties to even.
template <typename T>
__host__ __device__ inline T from_float(float value) {
    return static_cast<T>(value);
}
template <>
__host__ __device__ inline Bf16 from_float<Bf16>(float value) {
    Bf16 result;
#if defined(__CUDA_ARCH__)
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
#else
    std::uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    result.bits = static_cast<std::uint16_t>(nan ? 0x7fff : (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
#endif
    return result;
}

/// 2 to the power of a number of at most 0, to about 2 units in the last place; 0 for minus infinity.
__device__ inline float exponential2(float value) {
#if defined(__CUDA_ARCH__)
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
    return result;
#else
    return exp2f(value);
#endif
}

// ---- matrices, several neighbouring elements at a time

/// Elements that one access moves: 16 bytes where there are as many.
template <typename T, int N>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Pack {
    T at[N];
};

template <int N>
struct Values {
    float at[N];
};

/// A row-major matrix; `stride` elements from row to row.
template <typename T>
struct View {
    T* data;
    std::int64_t stride;

    template <int N>
    __device__ Values<N> load(std::int64_t row, std::int64_t column) const {
        const Pack<T, N> pack = *reinterpret_cast<const Pack<T, N>*>(data + row * stride + column);
        Values<N> values;
#pragma unroll
        for (int i = 0; i < N; ++i) values.at[i] = to_float(pack.at[i]);
        return values;
    }
    template <int N>
    __device__ void store(std::int64_t row, std::int64_t column, const Values<N>& values) const {
        Pack<T, N> pack;
#pragma unroll
        for (int i = 0; i < N; ++i) pack.at[i] = from_float<T>(values.at[i]);
        *reinterpret_cast<Pack<T, N>*>(data + row * stride + column) = pack;
    }
};

// ---- threads

__device__ inline float warp_sum(float value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
}
__device__ inline double warp_sum(double value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
}
__device__ inline float warp_maximum(float value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, distance));
    return value;
}

// ---- launching

#if defined(__CUDACC__)
extern __shared__ __align__(16) unsigned char dynamic_shared_bytes[];
__device__ inline unsigned char* dynamic_shared() {
    return dynamic_shared_bytes;
}

/// Throws BackendError, also for what failed on the device before.
template <typename... Parameters, typename... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), const Geometry& geometry, Stream stream,
            const Arguments&... arguments) {
    constexpr std::size_t kAlwaysThere = 48 * 1024;
    if (geometry.shared_bytes > kAlwaysThere) {
        check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(geometry.shared_bytes)),
              name);
    }
    kernel<<<dim3(geometry.grid.x, geometry.grid.y, geometry.grid.z), dim3(geometry.block.x, geometry.block.y),
             geometry.shared_bytes, stream>>>(static_cast<Parameters>(arguments)...);
    check(cudaGetLastError(), name);
}
#else
template <typename... Parameters, typename... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), const Geometry& geometry, Stream stream,
            const Arguments&... arguments) {
    // Values, as a launch takes them: it may run later.
    emulated_launch(name, geometry, stream,
                    [kernel, ... values = static_cast<Parameters>(arguments)] { kernel(values...); });
}
#endif

}  // namespace headway::backend::cuda
