#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

/// Device memory as the operations see it.
namespace headway::backend {

enum class DataType : std::uint8_t { kFloat64, kFloat32, kBfloat16, kInt32 };

constexpr std::int64_t size_of(DataType type) {
    switch (type) {
        case DataType::kFloat64:
            return 8;
        case DataType::kFloat32:
            return 4;
        case DataType::kBfloat16:
            return 2;
        case DataType::kInt32:
            return 4;
    }
    return 0;
}

/// A row-major matrix in a device's memory; a view that owns nothing. Element (row, column) is element
/// row * stride + column of `data`. A vector is one row.
struct Tensor {
    void* data = nullptr;
    DataType type = DataType::kFloat32;
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t stride = 0;  ///< elements from one row to the next, at least `columns`

    std::int64_t count() const { return rows * columns; }
    std::int64_t bytes() const { return count() * size_of(type); }
    bool contiguous() const { return stride == columns || rows <= 1; }
    bool empty() const { return count() == 0; }
    void* at(std::int64_t row, std::int64_t column) const {
        return static_cast<std::byte*>(data) + (row * stride + column) * size_of(type);
    }
    Tensor row_range(std::int64_t first, std::int64_t many) const {
        return {at(first, 0), type, many, columns, stride};
    }
    Tensor column_range(std::int64_t first, std::int64_t many) const {
        return {at(0, first), type, rows, many, stride};
    }
    /// Of a contiguous tensor: elements [first, first + many) as one row.
    Tensor elements(std::int64_t first, std::int64_t many) const {
        return {static_cast<std::byte*>(data) + first * size_of(type), type, 1, many, many};
    }
    /// Of a contiguous tensor, with as many elements.
    Tensor shaped(std::int64_t new_rows, std::int64_t new_columns) const {
        return {data, type, new_rows, new_columns, new_columns};
    }
};

/// Owns device memory; gives it back when it goes. Must not outlive its device.
class Buffer {
  public:
    Buffer() = default;
    Buffer(void* data, std::int64_t bytes, std::function<void(void*)> release)
        : data_(data), bytes_(bytes), release_(std::move(release)) {}
    Buffer(Buffer&& other) noexcept { swap(other); }
    Buffer& operator=(Buffer&& other) noexcept {
        Buffer(std::move(other)).swap(*this);
        return *this;
    }
    ~Buffer() {
        if (data_ != nullptr && release_) release_(data_);
    }

    void* data() const { return data_; }
    std::int64_t bytes() const { return bytes_; }
    Tensor tensor(DataType type, std::int64_t rows, std::int64_t columns) const {
        return {data_, type, rows, columns, columns};
    }

  private:
    void swap(Buffer& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        std::swap(release_, other.release_);
    }
    void* data_ = nullptr;
    std::int64_t bytes_ = 0;
    std::function<void(void*)> release_;
};

}  // namespace headway::backend
