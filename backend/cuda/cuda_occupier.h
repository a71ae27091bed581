#pragma once

#include <cuda_runtime.h>

#include "backend/cuda/cuda_device.h"
#include "backend/cuda/handles.h"
#include "backend/device/occupier.h"

namespace headway::backend {

/// Blocks that spin on some of the multiprocessors, in a stream of their own.
class CudaOccupier final : public Occupier {
  public:
    explicit CudaOccupier(CudaDevice& device);
    ~CudaOccupier() override;
    void occupy(double share, scenarios::Duration time) override;
    void release() override;

  private:
    CudaDevice& device_;
    int processors_ = 0;
    std::size_t shared_bytes_ = 0;  // nearly all that a block can have
    cuda::OwnedStream stream_;
    int* stop_ = nullptr;  // host memory that the device reads
};

/// Processors of `all` that are taken for `share` of them: at least one stays free.
constexpr int occupied_processors(double share, int all) {
    const int wanted = static_cast<int>(share * all + 0.5);
    return wanted < all ? wanted : all - 1;
}

}  // namespace headway::backend
