#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/cuda/block_cache.h"
#include "backend/cuda/cublas_products.h"
#include "backend/cuda/cuda_operations.h"
#include "backend/cuda/failure.h"
#include "backend/cuda/handles.h"
#include "backend/device/device.h"

namespace headway::backend {

/// A GPU: one compute stream, memory from a cache, marks by events. After a collective of one of its communicators
/// failed, what waits for the device throws that failure.
class CudaDevice final : public Device {
  public:
    /// The process's device `number`; `working_type` kBfloat16 or kFloat32.
    CudaDevice(int number, DataType working_type);
    ~CudaDevice() override;

    std::string name() const override { return name_; }
    DataType working_type() const override { return working_type_; }
    Operations& operations() override;

    using Device::allocate;
    Buffer allocate(scenarios::Bytes bytes) override;
    scenarios::Bytes memory_used() const override { return scenarios::Bytes(memory_.used_bytes()); }
    scenarios::Bytes memory_total() const override { return scenarios::Bytes(memory_total_bytes_); }
    void to_host(const Tensor& from, void* to) override;
    void from_host(const void* from, const Tensor& to) override;
    void synchronize() override;
    Mark mark() override;
    scenarios::Duration time_of(const Mark& mark) override;
    void forget_marks() override;

    int number() const { return number_; }
    cudaStream_t stream() const { return stream_->get(); }
    /// CUDA's current device is one of each thread.
    void make_current() const { cuda::check(cudaSetDevice(number_), "cudaSetDevice"); }
    /// What waits for the device throws this failure once it is set: that of its communicators, shared with the thread
    /// that watches them.
    void heed(std::shared_ptr<Failure> failure) { failure_ = std::move(failure); }

  private:
    std::int64_t since_origin_ns(const cuda::OwnedEvent& event) const;

    int number_;
    DataType working_type_;
    std::string name_;
    std::shared_ptr<Failure> failure_ = std::make_shared<Failure>();
    std::optional<cuda::OwnedStream> stream_;
    std::int64_t memory_total_bytes_ = 0;
    BlockCache memory_;  // outlives what holds memory of it
    std::optional<cuda::OwnedEvent> origin_;
    std::int64_t origin_ns_ = 0;  // of the origin, since the device was made
    std::vector<cuda::OwnedEvent> marks_;
    std::size_t marks_taken_ = 0;
    std::optional<CublasProducts> products_;
    std::optional<CudaOperations> operations_;
};

}  // namespace headway::backend
