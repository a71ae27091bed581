#pragma once

#include <cuda_runtime.h>

#include <string>

#include "backend/backend_error.h"

namespace headway::backend::cuda {

/// Throws BackendError with the call, the code and its text, and the current device.
inline void check(cudaError_t code, const char* call) {
    if (code == cudaSuccess) return;
    int device = -1;
    const bool known = cudaGetDevice(&device) == cudaSuccess;
    throw BackendError((known ? "cuda:" + std::to_string(device) + ": " : std::string("cuda: ")) + call,
                       std::string(cudaGetErrorName(code)) + " (" + std::to_string(static_cast<int>(code)) + "), " +
                           cudaGetErrorString(code));
}

}  // namespace headway::backend::cuda
