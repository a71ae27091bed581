#include "tests/backend/cuda/libraries/fake_cuda.h"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "tests/backend/cuda/libraries/kernel_streams.h"

namespace headway::tests::fake_cuda {

using Clock = std::chrono::steady_clock;

/// One recording of an event.
class Recording {
  public:
    void reach() {
        {
            const std::lock_guard lock(mutex_);
            at_ = Clock::now();
            reached_ = true;
        }
        changed_.notify_all();
    }
    void wait() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return reached_; });
    }
    bool reached() {
        const std::lock_guard lock(mutex_);
        return reached_;
    }
    Clock::time_point at() {
        const std::lock_guard lock(mutex_);
        return at_;
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool reached_ = false;
    Clock::time_point at_;
};

thread_local int current_device = 0;

}  // namespace headway::tests::fake_cuda

// CUDA's own names of what its handles point to.
struct CUevent_st {
    std::mutex mutex;
    std::shared_ptr<headway::tests::fake_cuda::Recording> recording;
    std::shared_ptr<headway::tests::fake_cuda::Recording> last() {
        const std::lock_guard lock(mutex);
        return recording;
    }
};

struct CUstream_st {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> calls;
    bool stop = false;
    std::thread thread{[this] { run(); }};

    void add(std::function<void()> call) {
        {
            const std::lock_guard lock(mutex);
            calls.push_back(std::move(call));
        }
        changed.notify_all();
    }
    void run() {
        for (;;) {
            std::function<void()> call;
            {
                std::unique_lock lock(mutex);
                changed.wait(lock, [&] { return stop || !calls.empty(); });
                if (calls.empty()) return;
                call = std::move(calls.front());
                calls.pop_front();
            }
            call();
        }
    }
};

namespace headway::tests {

void fake_stream_call(cudaStream_t stream, std::function<void()> call) {
    stream->add(std::move(call));
}

}  // namespace headway::tests

extern "C" {

cudaError_t cudaGetDevice(int* device) {
    *device = headway::tests::fake_cuda::current_device;
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
    headway::tests::fake_cuda::current_device = device;
    return cudaSuccess;
}
const char* cudaGetErrorName(cudaError_t) {
    return "cudaErrorFake";
}
const char* cudaGetErrorString(cudaError_t) {
    return "fake";
}
cudaError_t cudaGetLastError() {
    return cudaSuccess;
}
cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
    *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
    std::free(memory);
    return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
    *free = *total = std::size_t{1} << 30;
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
    std::strcpy(properties->name, "fake GPU");
    properties->major = 9;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    *least = *greatest = 0;
    return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
    static const bool once = [] {
        headway::emulation::use_streams(headway::tests::fake_stream_call);
        return true;
    }();
    static_cast<void>(once);
    *stream = new CUstream_st;
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    {
        const std::lock_guard lock(stream->mutex);
        stream->stop = true;
    }
    stream->changed.notify_all();
    stream->thread.join();
    delete stream;
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    const auto end = std::make_shared<headway::tests::fake_cuda::Recording>();
    stream->add([end] { end->reach(); });
    end->wait();
    return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    if (const auto recording = event->last()) stream->add([recording] { recording->wait(); });
    return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
    *event = new CUevent_st;
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete event;
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    const auto recording = std::make_shared<headway::tests::fake_cuda::Recording>();
    {
        const std::lock_guard lock(event->mutex);
        event->recording = recording;
    }
    stream->add([recording] { recording->reach(); });
    return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
    const auto recording = event->last();
    return recording == nullptr || recording->reached() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    if (const auto recording = event->last()) recording->wait();
    return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
    *milliseconds = std::chrono::duration<float, std::milli>(end->last()->at() - begin->last()->at()).count();
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
    stream->add([=] { std::memcpy(to, from, bytes); });
    return cudaSuccess;
}
}
