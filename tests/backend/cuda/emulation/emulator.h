#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#include "backend/cuda/kernels/geometry.h"
#include "backend/cuda/kernels/stream.h"

/// CUDA's blocks and warps on the host, as far as the kernels of backend/cuda/kernels use them: their sources are
/// compiled by the host's compiler with this header included first. A thread is a coroutine; the order in which those
/// of a block get their turn differs from launch to launch, so that a missing barrier shows. What is checked beside the
/// results: collectives that not all threads reach, accesses past the shared memory asked for, copies that are used
/// before they were waited for (until then the memory holds NaN, as does shared memory at the beginning of a block).
namespace headway::emulation {

struct Index {
    unsigned x = 0, y = 0, z = 0;
};

struct Place {
    Index thread, block, block_size, grid_size;
};
/// Of the thread that runs.
const Place& place();

void block_barrier();
bool block_any(bool value);
/// Every lane of a warp gives 64 bytes; returns those of all, [32] in order.
struct alignas(16) Slot {
    std::byte bytes[64];
};
const Slot* warp_exchange(const void* value, std::size_t bytes);

unsigned char* shared_memory();

void copy_later(void* to, const void* from, bool there);
void commit_copies();
void wait_for_copies(int groups);

template <typename T>
T of_lane(const Slot* slots, int lane) {
    T value;
    std::memcpy(&value, slots[lane].bytes, sizeof value);
    return value;
}

/// From now on what is launched on a stream that is not null is handed to `add`, which runs it in the stream's order.
/// An emulator belongs to one thread of the host; so do variables that a block shares.
void use_streams(std::function<void(backend::cuda::Stream stream, std::function<void()> call)> add);

}  // namespace headway::emulation

// ---- CUDA's words

#define __global__
#define __device__
#define __host__
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define threadIdx (::headway::emulation::place().thread)
#define blockIdx (::headway::emulation::place().block)
#define blockDim (::headway::emulation::place().block_size)
#define gridDim (::headway::emulation::place().grid_size)

inline int min(int a, int b) {
    return a < b ? a : b;
}
inline void __syncthreads() {
    ::headway::emulation::block_barrier();
}
inline int __syncthreads_or(int value) {
    return ::headway::emulation::block_any(value != 0) ? 1 : 0;
}
inline int __popc(unsigned bits) {
    return __builtin_popcount(bits);
}
inline unsigned __ballot_sync(unsigned, int value) {
    const auto* slots = ::headway::emulation::warp_exchange(&value, sizeof value);
    unsigned bits = 0;
    for (int lane = 0; lane < 32; ++lane)
        if (::headway::emulation::of_lane<int>(slots, lane) != 0) bits |= 1u << lane;
    return bits;
}
template <typename T>
T __shfl_xor_sync(unsigned, T value, int distance) {
    const auto* slots = ::headway::emulation::warp_exchange(&value, sizeof value);
    const auto& at = ::headway::emulation::place();
    const int lane = static_cast<int>((at.thread.y * at.block_size.x + at.thread.x) % 32);
    return ::headway::emulation::of_lane<T>(slots, lane ^ distance);
}

namespace headway::backend::cuda {

/// Runs `thread` for every thread of every block: at once, or in the stream (emulation::use_streams).
void emulated_launch(const char* name, const Geometry& geometry, Stream stream, std::function<void()> thread);

inline unsigned char* dynamic_shared() {
    return emulation::shared_memory();
}

struct Bf16;
// As tensor_core.cuh states them.
void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1);
void load_matrices(std::uint32_t (&to)[4], const Bf16* row);
void load_matrices_transposed(std::uint32_t (&to)[4], const Bf16* row);
inline void copy_async(Bf16* to, const Bf16* from, bool there) {
    emulation::copy_later(to, from, there);
}
inline void commit_copies() {
    emulation::commit_copies();
}
template <int kGroups>
void wait_for_copies() {
    emulation::wait_for_copies(kGroups);
}

}  // namespace headway::backend::cuda
