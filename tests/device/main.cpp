#include <gtest/gtest.h>

#include <iostream>

#include "backend/backend_error.h"
#include "backend/cuda/cuda_module.h"

/// Tests that need a GPU: one visible skip without one.
int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    try {
        headway::backend::cuda_module();
    } catch (const headway::backend::BackendError& error) {
        std::cout << "[  SKIPPED ] everything that needs a GPU: " << error.what() << '\n';
        return 77;
    }
    return RUN_ALL_TESTS();
}
