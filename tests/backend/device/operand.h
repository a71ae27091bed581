#pragma once

#include "backend/device/device.h"
#include "tests/backend/device/values.h"

namespace headway::tests {

/// A tensor on a device with given values, part of a wider one: `gap` elements lie before and after each row. They hold
/// a mark; an operation that writes there is found out when the values are read back.
class Operand {
  public:
    Operand(backend::Device& device, backend::DataType type, const Values& values, std::int64_t gap);

    operator const backend::Tensor&() const { return view_; }
    const backend::Tensor& tensor() const { return view_; }
    /// What the device has now. Fails the test when something was written beside the tensor.
    Values read() const;

  private:
    backend::Device* device_;
    std::int64_t gap_;
    backend::Buffer buffer_;
    backend::Tensor whole_;
    backend::Tensor view_;
};

}  // namespace headway::tests
