#pragma once

#include <bit>
#include <cstdint>

/// IEEE half precision and bfloat16 as bits.
namespace headway::backend {

constexpr float float_of_bfloat16(std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// To the nearest, ties to even; NaN stays NaN.
constexpr std::uint16_t bfloat16_of_float(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>(bits >> 16 | 0x40U);
    return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

constexpr float float_of_half(std::uint16_t bits) {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16, magnitude = bits & 0x7fffU;
    if (magnitude >= 0x7c00U) return std::bit_cast<float>(sign | 0x7f800000U | (magnitude & 0x3ffU) << 13);
    if (magnitude >= 0x400U) return std::bit_cast<float>(sign | ((magnitude << 13) + (112U << 23)));
    // Subnormal: exact as a product.
    const float value = static_cast<float>(magnitude) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
}

/// To the nearest, ties to even; beyond 65504 infinity; NaN stays NaN.
constexpr std::uint16_t half_of_float(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000U);
    const std::uint32_t magnitude = bits & 0x7fffffffU;
    if (magnitude > 0x7f800000U) return static_cast<std::uint16_t>(sign | 0x7e00U);
    if (magnitude >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);  // rounds beyond 65504
    if (magnitude < 0x38800000U) {  // subnormal: adding 2^-1 puts the last bit of 2^-24 where the sum is rounded
        const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
        return static_cast<std::uint16_t>(sign |
                                          (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5F)));
    }
    return static_cast<std::uint16_t>(sign | ((magnitude - (112U << 23) + 0xfffU + (magnitude >> 13 & 1U)) >> 13));
}

}  // namespace headway::backend
