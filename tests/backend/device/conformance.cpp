#include "tests/backend/device/conformance.h"

#include "backend/backend_error.h"

namespace headway::tests {

using backend::DataType;

std::string conformance_case_name(const ::testing::TestParamInfo<std::tuple<TestDevice, std::int64_t>>& at) {
    return std::get<0>(at.param).name + (std::get<1>(at.param) == 0 ? "Contiguous" : "Strided");
}

void OperationConformance::SetUp() {
    try {
        device_ = std::get<0>(GetParam()).make();
    } catch (const backend::BackendError& error) {
        GTEST_SKIP() << error.what();
    }
}

double OperationConformance::tolerance() const {
    switch (device_->working_type()) {
        case DataType::kFloat64:
            return 1e-13;
        case DataType::kFloat32:
            return 1e-5;
        default:
            return 1e-2;
    }
}

void OperationConformance::expect_close(const Operand& actual, const Values& expected, const std::string& what) {
    const double error = relative_error(actual.read(), expected);
    EXPECT_LE(error, tolerance()) << what << " on " << device_->name();
}

}  // namespace headway::tests
