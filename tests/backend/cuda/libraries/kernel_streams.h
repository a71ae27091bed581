#pragma once

#include <functional>

#include "backend/cuda/kernels/stream.h"

namespace headway::emulation {

/// As tests/backend/cuda/emulation/emulator.h states it, for sources that see CUDA's own words.
void use_streams(std::function<void(backend::cuda::Stream stream, std::function<void()> call)> add);

}  // namespace headway::emulation
