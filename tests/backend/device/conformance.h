#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "backend/device/device.h"
#include "tests/backend/device/operand.h"
#include "tests/backend/device/values.h"

namespace headway::tests {

/// A device that this program was built for.
struct TestDevice {
    std::string name;                            ///< of the test case
    std::unique_ptr<backend::Device> (*make)();  ///< throws BackendError when this machine has none
};
/// One definition a test program.
std::vector<TestDevice> test_devices();

/// Every operation on every device, over tensors that lie side by side in wider ones (the gap is the parameter). An
/// absent device is a visible skip.
class OperationConformance : public ::testing::TestWithParam<std::tuple<TestDevice, std::int64_t>> {
  protected:
    void SetUp() override;

    backend::Operations& operations() { return device_->operations(); }
    Operand working(const Values& values) { return {*device_, device_->working_type(), values, gap()}; }
    Operand accumulated(const Values& values) { return {*device_, device_->accumulation_type(), values, gap()}; }
    Operand tokens(const Values& values) { return {*device_, backend::DataType::kInt32, values, gap()}; }
    Operand contiguous(backend::DataType type, const Values& values) { return {*device_, type, values, 0}; }
    std::int64_t gap() const { return std::get<1>(GetParam()); }
    backend::Device& device() { return *device_; }

    /// Largest error over largest value that the working type allows.
    double tolerance() const;
    /// Fails the test, with the error, when `actual` is further than the tolerance from `expected`.
    void expect_close(const Operand& actual, const Values& expected, const std::string& what);

    RandomValues random_{20};

  private:
    std::unique_ptr<backend::Device> device_;
};

std::string conformance_case_name(const ::testing::TestParamInfo<std::tuple<TestDevice, std::int64_t>>& at);

#define HEADWAY_CONFORMANCE(suite)                                                                             \
    INSTANTIATE_TEST_SUITE_P(Devices, suite,                                                                   \
                             ::testing::Combine(::testing::ValuesIn(test_devices()), ::testing::Values(0, 3)), \
                             conformance_case_name)

}  // namespace headway::tests
