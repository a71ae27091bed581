#include "tests/backend/device/operand.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>

namespace headway::tests {

namespace {

using backend::DataType;

constexpr double kUntouched = 77.0;

template <typename Element>
void put(std::byte* to, Element value) {
    std::memcpy(to, &value, sizeof value);
}
template <typename Element>
Element get(const std::byte* from) {
    Element value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

void encode(DataType type, double value, std::byte* to) {
    switch (type) {
        case DataType::kFloat64:
            return put(to, value);
        case DataType::kFloat32:
            return put(to, static_cast<float>(value));
        case DataType::kBfloat16:
            return put(to, static_cast<std::uint16_t>(
                               std::bit_cast<std::uint32_t>(static_cast<float>(rounded_to_bfloat16(value))) >> 16));
        case DataType::kInt32:
            return put(to, static_cast<std::int32_t>(value));
    }
}

double decode(DataType type, const std::byte* from) {
    switch (type) {
        case DataType::kFloat64:
            return get<double>(from);
        case DataType::kFloat32:
            return get<float>(from);
        case DataType::kBfloat16:
            return std::bit_cast<float>(static_cast<std::uint32_t>(get<std::uint16_t>(from)) << 16);
        case DataType::kInt32:
            return get<std::int32_t>(from);
    }
    return 0.0;
}

}  // namespace

Operand::Operand(backend::Device& device, DataType type, const Values& values, std::int64_t gap)
    : device_(&device), gap_(gap) {
    const std::int64_t stride = values.columns + 2 * gap;
    buffer_ = device.allocate(type, values.rows * stride);
    whole_ = buffer_.tensor(type, values.rows, stride);
    view_ = whole_.column_range(gap, values.columns);
    std::vector<std::byte> bytes(static_cast<std::size_t>(whole_.bytes()));
    for (std::int64_t r = 0; r < values.rows; ++r)
        for (std::int64_t c = 0; c < stride; ++c) {
            const bool inside = c >= gap && c < gap + values.columns;
            encode(type, inside ? values(r, c - gap) : kUntouched,
                   bytes.data() + (r * stride + c) * backend::size_of(type));
        }
    device.from_host(bytes.data(), whole_);
}

Values Operand::read() const {
    std::vector<std::byte> bytes(static_cast<std::size_t>(whole_.bytes()));
    device_->synchronize();
    device_->to_host(whole_, bytes.data());
    Values values(view_.rows, view_.columns);
    bool untouched = true;
    for (std::int64_t r = 0; r < whole_.rows; ++r)
        for (std::int64_t c = 0; c < whole_.columns; ++c) {
            const double value =
                decode(whole_.type, bytes.data() + (r * whole_.columns + c) * backend::size_of(whole_.type));
            if (c >= gap_ && c < gap_ + view_.columns) {
                values(r, c - gap_) = value;
            } else {
                untouched = untouched && value == kUntouched;
            }
        }
    EXPECT_TRUE(untouched) << "written outside the tensor";
    return values;
}

}  // namespace headway::tests
