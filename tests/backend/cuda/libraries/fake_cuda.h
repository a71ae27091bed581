#pragma once

#include <cuda_runtime.h>

#include <functional>

/// CUDA's runtime as far as the device and the communicators use it, on the host: a stream is a thread that takes calls
/// in order, an event a state that one stream sets and others wait for. Memory is the host's. Kernels run emulated, in
/// their stream.
namespace headway::tests {

/// Runs `call` in the stream, after what was issued before.
void fake_stream_call(cudaStream_t stream, std::function<void()> call);

}  // namespace headway::tests
