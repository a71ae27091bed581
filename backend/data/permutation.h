#pragma once

#include <array>
#include <cstdint>

namespace headway::backend {

/// A keyed permutation of 0 .. count - 1 that needs no memory: a balanced Feistel network over the next power of four,
/// walked until it falls back into the range (Black & Rogaway 2002, "Ciphers with arbitrary finite domains"). Integer
/// arithmetic alone: the same on every machine.
class Permutation {
  public:
    /// `count` at least 1. Other keys, other orders.
    Permutation(std::int64_t count, std::uint64_t seed, std::uint64_t index);
    /// Where `position` (0 .. count - 1) goes.
    std::int64_t operator()(std::int64_t position) const;

  private:
    static constexpr int kRounds = 6;
    std::uint64_t count_;
    int half_bits_ = 1;
    std::array<std::uint64_t, kRounds> keys_{};
};

}  // namespace headway::backend
