#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/stream.h"

namespace headway::backend::cuda {

/// `blocks` blocks that do nothing useful for `nanoseconds` or until *stop (memory that the host can write) is not 0.
/// With all the shared memory that a block can have, no two lie on one multiprocessor, and nothing else that needs
/// shared memory lies beside one.
void spin(Stream stream, int blocks, std::size_t shared_bytes, std::int64_t nanoseconds, const int* stop);

}  // namespace headway::backend::cuda
