#pragma once

#include <memory>

#include "backend/device/device.h"

namespace headway::tests {

/// The operations of the CUDA device over emulated kernels. Products run through the plain kernel, since cuBLAS cannot
/// be emulated. Its memory begins at 256-byte addresses, holds NaN when handed out and has a guard behind it.
std::unique_ptr<backend::Device> make_emulated_cuda_device(backend::DataType working_type);

}  // namespace headway::tests
