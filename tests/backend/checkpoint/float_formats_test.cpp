#include "backend/checkpoint/float_formats.h"

#include <gtest/gtest.h>
#include <immintrin.h>

#include <cmath>
#include <limits>

namespace headway::backend {
namespace {

TEST(FloatFormats, ReadEveryHalfAsTheProcessorDoes) {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
        const auto half = static_cast<std::uint16_t>(bits);
        const float expected = _cvtsh_ss(half);
        if (std::isnan(expected))
            EXPECT_TRUE(std::isnan(float_of_half(half)));
        else
            EXPECT_EQ(std::bit_cast<std::uint32_t>(float_of_half(half)), std::bit_cast<std::uint32_t>(expected))
                << bits;
    }
}

TEST(FloatFormats, RoundToHalfAsTheProcessorDoes) {
    for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 9973) {
        const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
        if (std::isnan(value))
            EXPECT_TRUE(std::isnan(float_of_half(half_of_float(value))));
        else
            ASSERT_EQ(half_of_float(value), _cvtss_sh(value, 0)) << value;
    }
    for (const float value : {65504.0F, 65519.99F, 65520.0F, 1e30F, 0x1p-24F, 0x1p-25F, 0x1.8p-25F, 0x1.000002p-25F,
                              -0.0F, 0x1p-14F, 0x1.ffep-15F, std::numeric_limits<float>::infinity()})
        EXPECT_EQ(half_of_float(value), _cvtss_sh(value, 0)) << value;
}

TEST(FloatFormats, RoundToTheNearestBfloat16) {
    EXPECT_EQ(float_of_bfloat16(bfloat16_of_float(1.0F)), 1.0F);
    EXPECT_EQ(bfloat16_of_float(std::bit_cast<float>(0x3f808000U)), 0x3f80) << "a tie, to even";
    EXPECT_EQ(bfloat16_of_float(std::bit_cast<float>(0x3f818000U)), 0x3f82) << "a tie, to even";
    EXPECT_EQ(bfloat16_of_float(std::bit_cast<float>(0x3f808001U)), 0x3f81);
    EXPECT_EQ(bfloat16_of_float(std::bit_cast<float>(0x7f7fffffU)), 0x7f80) << "beyond the largest: infinity";
    EXPECT_TRUE(std::isnan(float_of_bfloat16(bfloat16_of_float(std::bit_cast<float>(0x7f800001U)))));
}

}  // namespace
}  // namespace headway::backend
