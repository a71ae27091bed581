#include "backend/cuda/cuda_device.h"

#include <cmath>
#include <stdexcept>

#include "backend/backend_error.h"

namespace headway::backend {

namespace {

using cuda::check;

/// A time between events is a float of milliseconds: past a second it begins to lose the half microsecond that the
/// device counts in, so the origin moves along.
constexpr std::int64_t kOriginMovesAfterNs = 1'000'000'000;

void* take_device_memory(std::int64_t bytes) {
    void* block = nullptr;
    const cudaError_t code = cudaMalloc(&block, static_cast<std::size_t>(bytes));
    if (code == cudaErrorMemoryAllocation) {
        cudaGetLastError();  // a failed allocation leaves nothing behind but this code
        return nullptr;
    }
    check(code, "cudaMalloc");
    return block;
}

void give_device_memory(void* block) {
    cudaFree(block);  // waits for the device; at the end of a failed process it fails too, which matters to nobody
}

std::string mebibytes(std::int64_t bytes) {
    return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB";
}

void require_contiguous_memory(const Tensor& tensor) {
    if (!tensor.contiguous()) throw std::invalid_argument("copy to or from the host: the tensor is not contiguous");
}

}  // namespace

CudaDevice::CudaDevice(int number, DataType working_type)
    : number_(number), working_type_(working_type), memory_(take_device_memory, give_device_memory) {
    make_current();
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, number_), "cudaGetDeviceProperties");
    name_ = "cuda:" + std::to_string(number_) + " " + properties.name;
    if (properties.major < 8) {
        throw BackendError(name_, "compute capability " + std::to_string(properties.major) + "." +
                                      std::to_string(properties.minor) + " is below 8.0, which this program needs");
    }
    stream_.emplace(false);
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    memory_total_bytes_ = static_cast<std::int64_t>(free);
    origin_.emplace(true);
    origin_->record(stream());
    products_.emplace(*this, stream());
    operations_.emplace(*this, working_type_, stream(), *products_);
    synchronize();
}

CudaDevice::~CudaDevice() {
    cudaSetDevice(number_);
    if (stream_) cudaStreamSynchronize(stream());
}

Operations& CudaDevice::operations() {
    make_current();
    return *operations_;
}

Buffer CudaDevice::allocate(scenarios::Bytes bytes) {
    make_current();
    if (bytes.count() == 0) return {};
    void* const block = memory_.take(bytes.count());
    if (block == nullptr) {
        std::size_t free = 0, total = 0;
        check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
        throw BackendError(name_ + ": memory", mebibytes(bytes.count()) + " were asked for, " +
                                                   mebibytes(static_cast<std::int64_t>(free)) + " of " +
                                                   mebibytes(static_cast<std::int64_t>(total)) + " are free, " +
                                                   mebibytes(memory_.used_bytes()) + " are in use here");
    }
    return {block, bytes.count(), [this](void* memory) { memory_.give_back(memory); }};
}

void CudaDevice::to_host(const Tensor& from, void* to) {
    require_contiguous_memory(from);
    make_current();
    if (!from.empty()) {
        check(cudaMemcpyAsync(to, from.data, static_cast<std::size_t>(from.bytes()), cudaMemcpyDeviceToHost, stream()),
              "cudaMemcpyAsync");
    }
    synchronize();
}

void CudaDevice::from_host(const void* from, const Tensor& to) {
    require_contiguous_memory(to);
    make_current();
    if (!to.empty()) {
        check(cudaMemcpyAsync(to.data, from, static_cast<std::size_t>(to.bytes()), cudaMemcpyHostToDevice, stream()),
              "cudaMemcpyAsync");
    }
    synchronize();
}

void CudaDevice::synchronize() {
    make_current();
    check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
    failure_->check();
}

Mark CudaDevice::mark() {
    make_current();
    if (marks_taken_ == marks_.size()) marks_.emplace_back(true);
    marks_[marks_taken_].record(stream());
    return {static_cast<std::int64_t>(marks_taken_++)};
}

std::int64_t CudaDevice::since_origin_ns(const cuda::OwnedEvent& event) const {
    float milliseconds = 0.0f;
    check(cudaEventElapsedTime(&milliseconds, origin_->get(), event.get()), "cudaEventElapsedTime");
    return std::llround(static_cast<double>(milliseconds) * 1e6);
}

scenarios::Duration CudaDevice::time_of(const Mark& mark) {
    make_current();
    if (mark.value < 0 || static_cast<std::size_t>(mark.value) >= marks_taken_)
        throw std::invalid_argument("time of a mark that this device has not taken, or has forgotten");
    const cuda::OwnedEvent& event = marks_[static_cast<std::size_t>(mark.value)];
    check(cudaEventSynchronize(event.get()), "cudaEventSynchronize");
    failure_->check();
    return scenarios::Duration::nanoseconds(origin_ns_ + since_origin_ns(event));
}

void CudaDevice::forget_marks() {
    make_current();
    if (marks_taken_ > 0 && marks_[marks_taken_ - 1].reached()) {
        cuda::OwnedEvent& last = marks_[marks_taken_ - 1];
        const std::int64_t passed_ns = since_origin_ns(last);
        if (passed_ns >= kOriginMovesAfterNs) {
            origin_ns_ += passed_ns;
            std::swap(*origin_, last);
        }
    }
    marks_taken_ = 0;
}

}  // namespace headway::backend
