#pragma once

#include <cuda_runtime.h>

#include <utility>

#include "backend/cuda/cuda_error.h"

/// Handles of CUDA that go with their scope. Made on the current device.
namespace headway::backend::cuda {

class OwnedStream {
  public:
    /// `urgent`: kernels of it go ahead of those that wait in other streams.
    explicit OwnedStream(bool urgent) {
        int least = 0, greatest = 0;
        check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
        check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, urgent ? greatest : least),
              "cudaStreamCreateWithPriority");
    }
    ~OwnedStream() {
        if (stream_ != nullptr) cudaStreamDestroy(stream_);
    }
    OwnedStream(const OwnedStream&) = delete;
    OwnedStream& operator=(const OwnedStream&) = delete;
    cudaStream_t get() const { return stream_; }

  private:
    cudaStream_t stream_ = nullptr;
};

class OwnedEvent {
  public:
    /// `timed`: its time can be asked for; one that only orders streams is cheaper without.
    explicit OwnedEvent(bool timed) {
        check(cudaEventCreateWithFlags(&event_, timed ? cudaEventDefault : cudaEventDisableTiming),
              "cudaEventCreateWithFlags");
    }
    ~OwnedEvent() {
        if (event_ != nullptr) cudaEventDestroy(event_);
    }
    OwnedEvent(OwnedEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
    OwnedEvent& operator=(OwnedEvent&& other) noexcept {
        std::swap(event_, other.event_);
        return *this;
    }
    cudaEvent_t get() const { return event_; }
    void record(cudaStream_t stream) const { check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
    /// What is issued on `stream` from now on starts after it.
    void hold_up(cudaStream_t stream) const { check(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent"); }
    bool reached() const {
        const cudaError_t code = cudaEventQuery(event_);
        if (code == cudaErrorNotReady) return false;
        check(code, "cudaEventQuery");
        return true;
    }

  private:
    cudaEvent_t event_ = nullptr;
};

}  // namespace headway::backend::cuda
