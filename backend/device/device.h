#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "backend/device/operations.h"
#include "backend/device/tensor.h"
#include "scenarios/language/units.h"

namespace headway::backend {

/// A point in the compute stream, for timing. Cheap; many may be taken in an iteration.
struct Mark {
    std::int64_t value = -1;  ///< meaningful to the device that made it
};

/// One processor that trains: its memory, its compute stream and its clock. The host is one whose stream is always
/// done. A device belongs to one thread at a time.
/// Errors: BackendError with the failed call and the device's name; memory that is not there says how much was asked
/// for and how much is free.
class Device {
  public:
    virtual ~Device() = default;
    virtual std::string name() const = 0;  ///< "host", "cuda:0 NVIDIA H100 80GB HBM3"
    virtual DataType working_type() const = 0;
    DataType accumulation_type() const {
        return working_type() == DataType::kFloat64 ? DataType::kFloat64 : DataType::kFloat32;
    }
    virtual Operations& operations() = 0;

    /// Aligned to 256 bytes, not initialised. Reused from a pool: cheap enough for activations of every micro-batch.
    virtual Buffer allocate(scenarios::Bytes bytes) = 0;
    Buffer allocate(DataType type, std::int64_t count) { return allocate(scenarios::Bytes(count * size_of(type))); }
    virtual scenarios::Bytes memory_used() const = 0;   ///< handed out now
    virtual scenarios::Bytes memory_total() const = 0;  ///< that this process may use

    /// Contiguous tensors; done when they return.
    virtual void to_host(const Tensor& from, void* to) = 0;
    virtual void from_host(const void* from, const Tensor& to) = 0;

    /// Returns when everything issued so far is done.
    virtual void synchronize() = 0;
    virtual Mark mark() = 0;
    /// When the stream reached the mark, counted from when the device was made. Waits for it.
    virtual scenarios::Duration time_of(const Mark& mark) = 0;
    /// Marks taken so far may be used again.
    virtual void forget_marks() = 0;
};

}  // namespace headway::backend
