#include "backend/host/kernels/lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "backend/host/kernels/tile_product.h"

namespace headway::tests {
namespace {

using backend::host::exponential;
using backend::host::Lanes;
using backend::host::largest_of;
using backend::host::over_lanes;
using backend::host::pack_panels;
using backend::host::pack_turned_panels;
using backend::host::padded_columns;
using backend::host::product_in_tiles;
using backend::host::spread;
using backend::host::sum_of;
using backend::host::TileRange;

TEST(HostLanes, ExponentialIsWithinTwoRoundingsOfTheLibrary) {
    double largest = 0.0;
    for (double x = -87.0; x < 88.0; x += 0.00037) {
        const auto value = static_cast<float>(x);
        const double exact = std::exp(static_cast<double>(value));
        largest = std::max(largest, std::abs(exponential(spread(value))[3] / exact - 1.0));
    }
    EXPECT_LT(largest, 1.5e-7);
    EXPECT_EQ(exponential(spread(0.0f))[0], 1.0f);
}

TEST(HostLanes, ExponentialOfExtremes) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    EXPECT_EQ(exponential(spread(-kInfinity))[0], 0.0f);
    EXPECT_EQ(exponential(spread(-200.0f))[0], 0.0f);
    EXPECT_NEAR(exponential(spread(kInfinity))[0] / std::exp(88.0), 1.0, 1e-6) << "stays finite";
    EXPECT_TRUE(std::isnan(exponential(spread(std::nanf("")))[0]));
}

TEST(HostLanes, LoopsReachEveryElementOnce) {
    for (std::int64_t count = 0; count < 20; ++count) {
        std::vector<float> values(static_cast<std::size_t>(count) + 1, 1.0f);
        over_lanes<float>(count, [&](auto at) { at.store(values.data(), at.load(values.data()) + 1.0f); });
        EXPECT_TRUE(std::all_of(values.begin(), values.end() - 1, [](float value) { return value == 2.0f; })) << count;
        EXPECT_EQ(values.back(), 1.0f) << "beyond " << count;
    }
}

TEST(HostLanes, SumsAndMaximaTakeAllLanes) {
    Lanes<float> lanes;
    for (int i = 0; i < 8; ++i) lanes[i] = static_cast<float>(i == 5 ? 100 : i);
    EXPECT_EQ(sum_of<float>(lanes), 123.0f);
    EXPECT_EQ(largest_of<float>(lanes), 100.0f);
}

/// c = 2 a b for all shapes up to some tiles, against three loops.
template <bool kTurned>
void expect_products() {
    for (const std::int64_t rows : {1, 5, 6, 7, 13})
        for (const std::int64_t inner : {1, 4, 9})
            for (const std::int64_t columns : {1, 16, 19}) {
                const std::int64_t width = padded_columns<float>(columns);
                std::vector<float> a(static_cast<std::size_t>(rows * inner)),
                    b(static_cast<std::size_t>(inner * columns));
                for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7) - 3.0f;
                for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 5) - 2.0f;
                std::vector<float> panels(static_cast<std::size_t>(inner * width)),
                    c(static_cast<std::size_t>(rows * width));
                pack_panels(b.data(), columns, inner, columns, panels.data());
                product_in_tiles<float, kTurned>(rows, a.data(), kTurned ? rows : inner, panels.data(), inner, c.data(),
                                                 width, 2.0f, false, [&](std::int64_t, std::int64_t) {
                                                     return TileRange{0, inner, columns};
                                                 });
                for (std::int64_t r = 0; r < rows; ++r)
                    for (std::int64_t column = 0; column < width; ++column) {
                        float expected = 0.0f;
                        for (std::int64_t i = 0; column < columns && i < inner; ++i)
                            expected += 2.0f * a[static_cast<std::size_t>(kTurned ? i * rows + r : r * inner + i)] *
                                        b[static_cast<std::size_t>(i * columns + column)];
                        ASSERT_EQ(c[static_cast<std::size_t>(r * width + column)], expected)
                            << rows << " x " << columns << " x " << inner << " at " << r << ", " << column;
                    }
            }
}

TEST(HostTiles, MultiplyPackedMatrices) {
    expect_products<false>();
    expect_products<true>();
}

TEST(HostTiles, PackedTransposesAreThoseOfPackedMatrices) {
    const std::int64_t rows = 21, columns = 5;
    std::vector<float> matrix(105), transposed(105);
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < columns; ++c)
            matrix[static_cast<std::size_t>(r * columns + c)] = transposed[static_cast<std::size_t>(c * rows + r)] =
                static_cast<float>(r * 10 + c);
    std::vector<float> turned(static_cast<std::size_t>(columns * padded_columns<float>(rows)), -1.0f), plain = turned;
    pack_turned_panels(matrix.data(), columns, rows, columns, turned.data());
    pack_panels(transposed.data(), rows, columns, rows, plain.data());
    EXPECT_EQ(turned, plain);
}

}  // namespace
}  // namespace headway::tests
