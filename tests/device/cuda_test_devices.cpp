#include "backend/cuda/cuda_module.h"
#include "tests/backend/device/conformance.h"

namespace headway::tests {

using backend::DataType;

std::vector<TestDevice> test_devices() {
    return {{"CudaBfloat16", [] { return backend::cuda_module().make_device(0, DataType::kBfloat16); }},
            {"CudaFloat32", [] { return backend::cuda_module().make_device(0, DataType::kFloat32); }}};
}

}  // namespace headway::tests
