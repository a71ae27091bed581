#include "tests/backend/cuda/emulation/emulated_device.h"
#include "tests/backend/device/conformance.h"

namespace headway::tests {

using backend::DataType;

std::vector<TestDevice> test_devices() {
    return {{"EmulatedBfloat16", [] { return make_emulated_cuda_device(DataType::kBfloat16); }},
            {"EmulatedFloat32", [] { return make_emulated_cuda_device(DataType::kFloat32); }}};
}

}  // namespace headway::tests
