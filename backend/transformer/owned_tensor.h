#pragma once

#include "backend/device/device.h"
#include "backend/device/tensor.h"

namespace headway::backend {

/// A contiguous matrix with the memory that it lies in.
struct OwnedTensor {
    OwnedTensor() = default;
    OwnedTensor(Device& device, DataType type, std::int64_t rows, std::int64_t columns)
        : buffer(device.allocate(type, rows * columns)), tensor(buffer.tensor(type, rows, columns)) {}
    /// Gives the memory back.
    void release() { *this = OwnedTensor(); }
    explicit operator bool() const { return tensor.data != nullptr; }

    Buffer buffer;
    Tensor tensor;
};

}  // namespace headway::backend
