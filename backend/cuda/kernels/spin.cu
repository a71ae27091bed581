#include "backend/cuda/kernels/dialect.cuh"
#include "backend/cuda/kernels/spin.h"

#if defined(__CUDACC__)
namespace headway::backend::cuda {

namespace {

__device__ inline unsigned long long nanoseconds_now() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

/// Until the time is over or the host says stop. Busy with arithmetic, as a tenant's kernel would be; one thread of a
/// block asks the host, since that goes over the bus.
__global__ void spin_kernel(unsigned long long nanoseconds, const volatile int* stop) {
    __shared__ volatile int over;
    if (threadIdx.x == 0) over = 0;
    __syncthreads();
    const unsigned long long begin = nanoseconds_now();
    float value = static_cast<float>(threadIdx.x);
    while (over == 0) {
        for (int i = 0; i < 4096; ++i) value = fmaf(value, 0.999f, 0.001f);
        if (threadIdx.x == 0 && (nanoseconds_now() - begin >= nanoseconds || *stop != 0)) over = 1;
    }
    // Never true, and the compiler cannot know.
    if (value < -1.0f) asm volatile("trap;");
}

}  // namespace

void spin(Stream stream, int blocks, std::size_t shared_bytes, std::int64_t nanoseconds, const int* stop) {
    Geometry geometry;
    geometry.block = {1024, 1, 1};
    geometry.grid.x = static_cast<unsigned>(blocks);
    geometry.shared_bytes = shared_bytes;
    launch("spin", spin_kernel, geometry, stream, static_cast<unsigned long long>(nanoseconds), stop);
}

}  // namespace headway::backend::cuda
#endif
