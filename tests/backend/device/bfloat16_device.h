#pragma once

#include <bit>
#include <cstdint>
#include <memory>

#include "backend/device/device.h"

namespace headway::tests {

/// A number of 16 bits that computes as float32 does and is rounded to nearest, ties to even.
class Bfloat16 {
  public:
    Bfloat16() = default;
    Bfloat16(float value) : bits_(rounded(value)) {}
    operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits_) << 16); }

  private:
    static std::uint16_t rounded(float value) {
        const auto bits = std::bit_cast<std::uint32_t>(value);
        if (value != value) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
        return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
    }
    std::uint16_t bits_ = 0;
};

/// A device whose working type is bfloat16 and whose accumulation type is float32, as GPUs have them, on the host:
/// operations compute in float32 on the values that bfloat16 holds, and what they leave in working tensors is rounded
/// to it. Slow; it shows without a GPU what mixed types do to a suite's bounds, to the transformer and to a trainer.
std::unique_ptr<backend::Device> make_bfloat16_device();

}  // namespace headway::tests
