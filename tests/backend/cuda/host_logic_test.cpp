#include <gtest/gtest.h>

#include <vector>

#include "backend/backend_error.h"
#include "backend/cuda/availability.h"
#include "backend/cuda/kernels/geometry.h"
#include "backend/cuda/matrix_products.h"

/// What the CUDA backend computes on the host: none of it needs a GPU.
namespace headway::tests {
namespace {

using backend::cuda_absence;
using backend::DataType;
using backend::Tensor;
using backend::Transpose;

TEST(CudaAvailability, TellsNoDriverFromAnOldOne) {
    const std::string misleading = "CUDA driver version is insufficient for CUDA runtime version";
    EXPECT_EQ(cuda_absence(35, misleading, 0, 0), "no driver");
    EXPECT_EQ(cuda_absence(35, misleading, 12040, 0),
              "driver too old: it is made for CUDA 12.4, this program needs a newer one");
}

TEST(CudaAvailability, TellsNoGpuFromAnyOtherFailure) {
    EXPECT_EQ(cuda_absence(100, "no CUDA-capable device is detected", 13000, 0), "no GPU found");
    EXPECT_EQ(cuda_absence(0, "", 13000, 0), "no GPU found");
    EXPECT_EQ(cuda_absence(802, "system not yet initialized", 13000, 0),
              "cudaGetDeviceCount: error 802, system not yet initialized");
    EXPECT_EQ(cuda_absence(0, "", 13000, 8), "");
}

TEST(LaunchGeometry, CoversEveryElementWithWholeWarps) {
    using backend::cuda::elements_geometry;
    for (const std::int64_t rows : {1, 2, 7, 1000, 70'000})
        for (const std::int64_t packs : {1, 3, 31, 96, 255, 256, 257, 100'000}) {
            const auto geometry = elements_geometry(rows, packs);
            EXPECT_EQ(geometry.block.x * geometry.block.y, 256u);
            EXPECT_LE(geometry.grid.y, 65535u);
            EXPECT_GE(static_cast<std::int64_t>(geometry.grid.x) * geometry.block.x, packs);
            EXPECT_GE(static_cast<std::int64_t>(geometry.grid.y) * geometry.block.y,
                      std::min<std::int64_t>(rows, 32768));
        }
}

TEST(LaunchGeometry, LeavesTheGridWithinItsLimits) {
    const auto geometry = backend::cuda::elements_geometry(1 << 24, std::int64_t{1} << 40);
    EXPECT_LE(geometry.grid.x, 0x7fffffffu);
    EXPECT_LE(geometry.grid.y, 65535u);
}

TEST(LaunchGeometry, GivesLongRowsABlockAndShortOnesAWarp) {
    using backend::cuda::rows_geometry;
    EXPECT_EQ(backend::cuda::threads_of_row(768), 32);
    EXPECT_EQ(backend::cuda::threads_of_row(4096), 256);
    EXPECT_EQ(rows_geometry(17, 32).grid.x, 3u);
    EXPECT_EQ(rows_geometry(17, 256).grid.x, 17u);
}

TEST(LaunchGeometry, MovesPacksOnlyWhereAllRowsAreAligned) {
    alignas(16) static std::byte memory[4096];
    const auto tensor = [](std::int64_t offset, std::int64_t rows, std::int64_t columns, std::int64_t stride) {
        return Tensor{memory + offset, DataType::kBfloat16, rows, columns, stride};
    };
    using backend::cuda::common_width;
    EXPECT_EQ(common_width({tensor(0, 4, 16, 24), tensor(16, 4, 16, 16)}), 8);
    EXPECT_EQ(common_width({tensor(0, 4, 16, 24), tensor(2, 4, 16, 16)}), 1) << "an address off by one element";
    EXPECT_EQ(common_width({tensor(0, 4, 16, 17)}), 1) << "a stride of no whole packs";
    EXPECT_EQ(common_width({tensor(0, 1, 16, 17)}), 8) << "the stride of one row does not matter";
    EXPECT_EQ(common_width({tensor(0, 4, 15, 16)}), 1) << "rows of no whole packs";
}

TEST(LaunchGeometry, CutsColumnSumsByTheShapeAlone) {
    EXPECT_EQ(backend::cuda::strips_of_rows(1), 1);
    EXPECT_EQ(backend::cuda::strips_of_rows(64), 2);
    EXPECT_EQ(backend::cuda::strips_of_rows(1'000'000), 64);
}

/// c = op(first) op(second) + beta c, column-major, as cuBLAS defines it.
void column_major_product(const backend::ColumnMajorProduct& product, const double* first, const double* second,
                          double* result) {
    const auto element = [](const double* of, bool transposed, std::int64_t leading, std::int64_t row,
                            std::int64_t column) {
        return transposed ? of[row * leading + column] : of[column * leading + row];
    };
    for (std::int64_t i = 0; i < product.m; ++i)
        for (std::int64_t j = 0; j < product.n; ++j) {
            double sum = 0.0;
            for (std::int64_t k = 0; k < product.k; ++k)
                sum += element(first, product.transpose_first, product.first_leading, i, k) *
                       element(second, product.transpose_second, product.second_leading, k, j);
            result[j * product.result_leading + i] = sum;
        }
}

class RowMajorProducts : public ::testing::TestWithParam<std::tuple<Transpose, Transpose>> {};

TEST_P(RowMajorProducts, AreColumnMajorProductsOfTheirTransposes) {
    const auto [ta, tb] = GetParam();
    const std::int64_t rows = 3, columns = 4, inner = 5;
    const auto matrix = [](std::vector<double>& memory, std::int64_t r, std::int64_t c, std::int64_t gap) {
        memory.resize(static_cast<std::size_t>(r * (c + gap)));
        for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<double>((i * 37 + 11) % 23) - 9.0;
        return Tensor{memory.data(), DataType::kFloat64, r, c, c + gap};
    };
    std::vector<double> of_a, of_b, of_c;
    const bool turn_a = ta == Transpose::kYes, turn_b = tb == Transpose::kYes;
    const Tensor a = matrix(of_a, turn_a ? inner : rows, turn_a ? rows : inner, 2),
                 b = matrix(of_b, turn_b ? columns : inner, turn_b ? inner : columns, 1),
                 c = matrix(of_c, rows, columns, 3);
    const auto product = column_major(ta, tb, a, b, c);
    // A library reads an operand within its stated size; what is transposed is stated as it is stored.
    EXPECT_EQ(product.first_rows, b.columns);
    EXPECT_EQ(product.second_columns, a.rows);
    column_major_product(product, of_b.data(), of_a.data(), of_c.data());
    const auto at = [](const Tensor& of, bool turned, std::int64_t r, std::int64_t col) {
        return *static_cast<const double*>(turned ? of.at(col, r) : of.at(r, col));
    };
    for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j) {
            double sum = 0.0;
            for (std::int64_t k = 0; k < inner; ++k) sum += at(a, turn_a, i, k) * at(b, turn_b, k, j);
            EXPECT_EQ(*static_cast<const double*>(c.at(i, j)), sum) << i << ", " << j;
        }
}

INSTANTIATE_TEST_SUITE_P(All, RowMajorProducts,
                         ::testing::Combine(::testing::Values(Transpose::kNo, Transpose::kYes),
                                            ::testing::Values(Transpose::kNo, Transpose::kYes)));

TEST(RowMajorProduct, GivesASingleRowALeadingDimensionThatTheLibraryAccepts) {
    const Tensor row{nullptr, DataType::kFloat32, 1, 100, 1}, weights{nullptr, DataType::kFloat32, 100, 7, 7},
        result{nullptr, DataType::kFloat32, 1, 7, 7};
    EXPECT_EQ(column_major(Transpose::kNo, Transpose::kNo, row, weights, result).second_leading, 100);
}

}  // namespace
}  // namespace headway::tests
