#include "backend/cuda/cublas_products.h"

#include "backend/backend_error.h"

// A device over fake streams runs no kernels, so it needs no library for products.
namespace headway::backend {

class CublasProducts::Impl {};

CublasProducts::CublasProducts(Device&, cuda::Stream) {}
CublasProducts::~CublasProducts() = default;
void CublasProducts::product(Transpose, Transpose, double, const Tensor&, const Tensor&, double, const Tensor&) {
    throw BackendError("product", "a fake device computes nothing");
}

}  // namespace headway::backend
