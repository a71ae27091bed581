#pragma once

#include <functional>
#include <memory>

#include "backend/cuda/matrix_products.h"
#include "backend/device/device.h"

namespace headway::tests {

/// The operations of the CUDA device over emulated kernels. Products are those of `make_products`; without it they run
/// through the plain kernel. Its memory begins at 256-byte addresses, holds NaN when handed out and has a guard behind
/// it.
using MakeProducts = std::function<std::unique_ptr<backend::MatrixProducts>(backend::Device&)>;
std::unique_ptr<backend::Device> make_emulated_cuda_device(backend::DataType working_type,
                                                           const MakeProducts& make_products = nullptr);

}  // namespace headway::tests
