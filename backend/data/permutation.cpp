#include "backend/data/permutation.h"

#include <stdexcept>
#include <utility>

#include "scenarios/language/random.h"

namespace headway::backend {
namespace {

/// The finaliser of SplitMix64 (Steele et al. 2014).
std::uint64_t permutation_mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

}  // namespace

Permutation::Permutation(std::int64_t count, std::uint64_t seed, std::uint64_t index)
    : count_(static_cast<std::uint64_t>(count)) {
    if (count < 1) throw std::invalid_argument("permutation: nothing to permute");
    while (half_bits_ < 31 && (std::uint64_t{1} << (2 * half_bits_)) < count_) ++half_bits_;
    scenarios::RandomStream stream(seed, "order of sequences", index);
    for (std::uint64_t& key : keys_) key = stream.next();
}

std::int64_t Permutation::operator()(std::int64_t position) const {
    const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
    auto value = static_cast<std::uint64_t>(position);
    do {
        std::uint64_t left = value >> half_bits_, right = value & mask;
        for (const std::uint64_t key : keys_) left = std::exchange(right, left ^ (permutation_mix(right ^ key) & mask));
        value = left << half_bits_ | right;
    } while (value >= count_);
    return static_cast<std::int64_t>(value);
}

}  // namespace headway::backend
