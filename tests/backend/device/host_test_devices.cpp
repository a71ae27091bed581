#include "backend/host/host_device.h"
#include "tests/backend/device/bfloat16_device.h"
#include "tests/backend/device/conformance.h"

namespace headway::tests {

using backend::DataType;

std::vector<TestDevice> test_devices() {
    return {{"Host", [] { return backend::make_host_device(DataType::kFloat32); }},
            {"HostFloat64", [] { return backend::make_host_device(DataType::kFloat64); }},
            {"Bfloat16", make_bfloat16_device}};
}

}  // namespace headway::tests
