#pragma once

#include <memory>

#include "backend/cuda/kernels/stream.h"
#include "backend/cuda/matrix_products.h"
#include "backend/device/device.h"

namespace headway::backend {

/// Products by cuBLASLt. Sums run in float32, without TF32, also where the work is split; the algorithm that its
/// heuristics choose is kept per shape. What it has no kernel for (odd alignments) runs on an own, slower one. Throws
/// BackendError.
class CublasProducts final : public MatrixProducts {
  public:
    /// `device` provides the work space; it is current, and outlives this.
    CublasProducts(Device& device, cuda::Stream stream);
    ~CublasProducts() override;
    void product(Transpose ta, Transpose tb, double alpha, const Tensor& a, const Tensor& b, double beta,
                 const Tensor& c) override;

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace headway::backend
