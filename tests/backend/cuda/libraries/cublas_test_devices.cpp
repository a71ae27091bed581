#include "backend/cuda/cublas_products.h"
#include "tests/backend/cuda/emulation/emulated_device.h"
#include "tests/backend/device/conformance.h"

namespace headway::tests {

using backend::DataType;

std::vector<TestDevice> test_devices() {
    static const auto make_products = [](backend::Device& device) -> std::unique_ptr<backend::MatrixProducts> {
        return std::make_unique<backend::CublasProducts>(device, nullptr);
    };
    return {{"CublasBfloat16", [] { return make_emulated_cuda_device(DataType::kBfloat16, make_products); }},
            {"CublasFloat32", [] { return make_emulated_cuda_device(DataType::kFloat32, make_products); }}};
}

}  // namespace headway::tests
