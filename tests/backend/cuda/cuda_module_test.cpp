#include "backend/cuda/cuda_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/backend_error.h"

namespace headway::tests {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

TEST(CudaModule, SaysWhyThereIsNoDevice) {
    try {
        backend::cuda_module();
    } catch (const backend::BackendError& error) {
        EXPECT_THAT(error.what(),
                    AnyOf(HasSubstr("no CUDA device: no driver"), HasSubstr("no CUDA device: driver too old"),
                          HasSubstr("no CUDA device: no GPU found"),
                          HasSubstr("no CUDA device: this build was made without CUDA")));
        return;
    }
    GTEST_SKIP() << "this machine has a GPU";
}

/// What the build made is what is found, also from the folder of the tests.
TEST(CudaModule, IsFoundWhereItWasBuilt) {
    if (!HEADWAY_HAS_CUDA) GTEST_SKIP() << "this build was made without CUDA";
    try {
        backend::cuda_module();
    } catch (const backend::BackendError& error) {
        EXPECT_THAT(error.what(), testing::Not(HasSubstr("without CUDA")));
        EXPECT_THAT(error.what(), testing::Not(HasSubstr("another build")));
    }
}

}  // namespace
}  // namespace headway::tests
