#include "backend/cuda/cuda_occupier.h"

#include <atomic>
#include <stdexcept>

#include "backend/cuda/kernels/spin.h"

namespace headway::backend {

using cuda::check;

namespace {

constexpr std::size_t kOwnSharedBytes = 1024;  // left to the kernel's own variables

}  // namespace

CudaOccupier::CudaOccupier(CudaDevice& device) : device_(device), stream_((device.make_current(), true)) {
    int shared = 0;
    check(cudaDeviceGetAttribute(&processors_, cudaDevAttrMultiProcessorCount, device_.number()),
          "cudaDeviceGetAttribute");
    check(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device_.number()),
          "cudaDeviceGetAttribute");
    shared_bytes_ = static_cast<std::size_t>(shared) - kOwnSharedBytes;
    check(cudaHostAlloc(&stop_, sizeof *stop_, cudaHostAllocMapped), "cudaHostAlloc");
    *stop_ = 0;
}

CudaOccupier::~CudaOccupier() {
    cudaSetDevice(device_.number());
    std::atomic_ref<int>(*stop_).store(1);
    cudaStreamSynchronize(stream_.get());
    cudaFreeHost(stop_);
}

void CudaOccupier::occupy(double share, scenarios::Duration time) {
    if (!(share >= 0.0 && share < 1.0)) throw std::invalid_argument("share of a device must be at least 0 and below 1");
    release();
    const int blocks = occupied_processors(share, processors_);
    if (blocks > 0 && time.ns() > 0) cuda::spin(stream_.get(), blocks, shared_bytes_, time.ns(), stop_);
}

void CudaOccupier::release() {
    device_.make_current();
    std::atomic_ref<int>(*stop_).store(1);
    check(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
    std::atomic_ref<int>(*stop_).store(0);
}

}  // namespace headway::backend
