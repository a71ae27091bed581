#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

#include "backend/host/host_device.h"
#include "tests/backend/device/operand.h"

namespace headway::tests {
namespace {

using backend::DataType;
using backend::Tensor;
using backend::Transpose;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class CheckedOperations : public ::testing::Test {
  protected:
    Tensor of(std::int64_t rows, std::int64_t columns, DataType type = DataType::kFloat32) {
        kept_.push_back(device_->allocate(type, rows * columns));
        return kept_.back().tensor(type, rows, columns);
    }
    backend::Operations& operations() { return device_->operations(); }
    void expect_refused(const std::function<void()>& call, const char* why) {
        EXPECT_THAT(call, ThrowsMessage<std::invalid_argument>(HasSubstr(why)));
    }

    std::unique_ptr<backend::Device> device_ = backend::make_host_device();
    std::vector<backend::Buffer> kept_;
};

TEST_F(CheckedOperations, GemmWantsMatchingInnerSizesAndTypes) {
    const auto multiply = [this](const Tensor& a, const Tensor& b, const Tensor& c) {
        return [=, this] { operations().gemm(Transpose::kNo, Transpose::kYes, 1.0, a, b, 0.0, c); };
    };
    expect_refused(multiply(of(2, 3), of(4, 5), of(2, 4)), "gemm: b is 4 x 5, not 4 x 3");
    expect_refused(multiply(of(2, 3), of(4, 3), of(3, 4)), "gemm: a is 2 x 3, not 3 x 3");
    expect_refused(multiply(of(2, 3, DataType::kFloat64), of(4, 3), of(2, 4)), "gemm: a is float64");
}

TEST_F(CheckedOperations, VectorsHaveOneRow) {
    expect_refused([&] { operations().add_bias(of(4, 3), of(3, 1)); }, "add_bias: bias is 3 x 1, not 1 x 3");
    expect_refused([&] { operations().row_maxima(of(4, 3), of(1, 3)); }, "row_maxima: maxima is 1 x 3, not 1 x 4");
}

TEST_F(CheckedOperations, StridesCoverTheColumnsAndMemoryIsThere) {
    Tensor narrow = of(4, 3);
    narrow.stride = 2;
    expect_refused([&] { operations().scale(narrow, 2.0); }, "scale: x has a stride of 2 for 3 columns");
    expect_refused([&] { operations().scale(Tensor{nullptr, DataType::kFloat32, 2, 2, 2}, 2.0); }, "x has no memory");
}

TEST_F(CheckedOperations, AttentionWantsWholeGroupsOfHeads) {
    expect_refused(
        [&] {
            operations().attention({1, 4, 3, 2, 5}, of(4, 15), of(4, 10), of(4, 10), of(4, 15), of(3, 4));
        },
        "kv_heads must divide heads");
    expect_refused(
        [&] {
            operations().attention({2, 4, 2, 2, 5}, of(4, 10), of(8, 10), of(8, 10), of(8, 10), of(4, 4));
        },
        "attention: q is 4 x 10, not 8 x 10");
}

TEST_F(CheckedOperations, RotaryWantsEvenHeads) {
    expect_refused([&] { operations().rotary(of(4, 6), 4, 3, 10000.0, false); }, "head_dim must be even");
    expect_refused([&] { operations().rotary(of(4, 6), 4, 4, 10000.0, false); }, "whole heads");
}

TEST_F(CheckedOperations, TokensAreWholeNumbers) {
    expect_refused([&] { operations().embedding(of(1, 4), of(9, 2), 0, of(4, 2)); }, "embedding: tokens is float32");
    expect_refused([&] { operations().copy(of(1, 4), of(1, 4, DataType::kInt32)); }, "whole numbers");
}

TEST_F(CheckedOperations, PositionsStayInsideTheTable) {
    expect_refused([&] { operations().add_positions(of(3, 2), 4, 0, of(5, 2)); }, "at most the table's rows");
}

TEST_F(CheckedOperations, AdamWWantsContiguousTensorsOfOneSize) {
    backend::AdamW settings;
    expect_refused([&] { operations().adamw(settings, of(1, 3), of(1, 4), of(1, 4), of(1, 4)); }, "of one size");
    expect_refused([&] { operations().adamw(settings, of(3, 4).column_range(0, 2), of(3, 2), of(3, 2), of(3, 2)); },
                   "contiguous");
    settings.step = 0;
    expect_refused([&] { operations().adamw(settings, of(1, 4), of(1, 4), of(1, 4), of(1, 4)); }, "counted from 1");
}

TEST_F(CheckedOperations, TheHostHasNoBfloat16) {
    expect_refused([&] { operations().copy(of(1, 4), of(1, 4, DataType::kBfloat16)); }, "no bfloat16");
}

}  // namespace
}  // namespace headway::tests
