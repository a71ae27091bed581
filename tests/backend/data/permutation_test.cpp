#include "backend/data/permutation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <vector>

namespace headway::backend {
namespace {

std::vector<std::int64_t> permutation_of(std::int64_t count, std::uint64_t seed, std::uint64_t index) {
    const Permutation permutation(count, seed, index);
    std::vector<std::int64_t> order;
    for (std::int64_t i = 0; i < count; ++i) order.push_back(permutation(i));
    return order;
}

TEST(Permutation, ReachesEachNumberOnce) {
    for (const std::int64_t count : {1, 2, 3, 4, 5, 16, 17, 100, 1023, 1024, 1025, 4097, 70'000}) {
        std::vector<int> reached(static_cast<std::size_t>(count));
        for (const std::int64_t to : permutation_of(count, 7, 0)) {
            ASSERT_GE(to, 0);
            ASSERT_LT(to, count);
            ++reached[static_cast<std::size_t>(to)];
        }
        EXPECT_EQ(reached, std::vector<int>(static_cast<std::size_t>(count), 1)) << count;
    }
}

TEST(Permutation, IsAnotherOneForAnotherSeedOrIndex) {
    const auto first = permutation_of(100, 1, 0);
    EXPECT_EQ(first, permutation_of(100, 1, 0));
    EXPECT_NE(first, permutation_of(100, 2, 0));
    EXPECT_NE(first, permutation_of(100, 1, 1));
}

/// Each place's mean over many keys is that of a uniform draw, and neighbours land independently.
TEST(Permutation, Shuffles) {
    constexpr int kCount = 50, kKeys = 4000;
    std::vector<double> sums(kCount);
    double products = 0.0;
    for (int key = 0; key < kKeys; ++key) {
        const auto order = permutation_of(kCount, 3, static_cast<std::uint64_t>(key));
        for (int i = 0; i < kCount; ++i)
            sums[static_cast<std::size_t>(i)] += static_cast<double>(order[static_cast<std::size_t>(i)]);
        products += (static_cast<double>(order[0]) - 24.5) * (static_cast<double>(order[1]) - 24.5);
    }
    const double variance = (kCount * kCount - 1) / 12.0;
    const double deviation_of_mean = std::sqrt(variance / kKeys);
    for (const double sum : sums) EXPECT_NEAR(sum / kKeys, 24.5, 5 * deviation_of_mean);
    // Without replacement: correlation -1 / (n - 1).
    EXPECT_NEAR(products / kKeys / variance, -1.0 / (kCount - 1), 5.0 / std::sqrt(kKeys));
}

TEST(Permutation, OfNothingIsRefused) {
    EXPECT_THROW(Permutation(0, 1, 0), std::invalid_argument);
}

}  // namespace
}  // namespace headway::backend
