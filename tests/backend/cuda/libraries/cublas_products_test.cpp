#include "backend/cuda/cublas_products.h"

#include <gtest/gtest.h>

#include "tests/backend/cuda/emulation/emulated_device.h"
#include "tests/backend/cuda/libraries/fake_cublas.h"
#include "tests/backend/device/operand.h"
#include "tests/backend/device/values.h"

namespace headway::tests {
namespace {

using backend::CublasProducts;
using backend::DataType;
using backend::Tensor;
using backend::Transpose;

TEST(CublasProducts, AskForAnAlgorithmOnceAShape) {
    const auto device = make_emulated_cuda_device(DataType::kBfloat16);
    CublasProducts products(*device, nullptr);
    const Operand a(*device, DataType::kBfloat16, Values(4, 8, 1.0), 0),
        b(*device, DataType::kBfloat16, Values(8, 16, 1.0), 0);
    Operand c(*device, DataType::kFloat32, Values(4, 16), 0);
    const FakeCublasCounts before = fake_cublas_counts();
    for (int i = 0; i < 3; ++i) products.product(Transpose::kNo, Transpose::kNo, 1.0, a, b, 1.0, c);
    EXPECT_EQ(fake_cublas_counts().heuristics - before.heuristics, 1);
    EXPECT_EQ(fake_cublas_counts().products - before.products, 3);
    EXPECT_EQ(c.read().at, Values(4, 16, 24.0).at);
    products.product(Transpose::kNo, Transpose::kNo, 1.0, a, b, 0.0, c);
    EXPECT_EQ(fake_cublas_counts().heuristics - before.heuristics, 2) << "what is not read may allow another";
}

TEST(CublasProducts, MultiplyThemselvesWhatTheLibraryDoesNotTake) {
    const auto device = make_emulated_cuda_device(DataType::kBfloat16);
    CublasProducts products(*device, nullptr);
    const Operand a(*device, DataType::kBfloat16, Values(4, 8, 1.0), 3),
        b(*device, DataType::kBfloat16, Values(8, 16, 1.0), 3);
    Operand c(*device, DataType::kBfloat16, Values(4, 16), 3);
    const FakeCublasCounts before = fake_cublas_counts();
    products.product(Transpose::kNo, Transpose::kNo, 2.0, a, b, 0.0, c);
    EXPECT_EQ(fake_cublas_counts().products, before.products);
    EXPECT_EQ(c.read().at, Values(4, 16, 16.0).at);
}

}  // namespace
}  // namespace headway::tests
