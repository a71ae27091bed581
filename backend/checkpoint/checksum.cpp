#include "backend/checkpoint/checksum.h"

#define XXH_INLINE_ALL  // compiled here, for this instruction set; no library is linked
#include <xxhash.h>

#include <array>
#include <cstdio>

namespace headway::backend {

std::uint64_t checksum_of(std::span<const std::byte> bytes) {
    return XXH3_64bits(bytes.data(), bytes.size());
}

std::string checksum_text(std::uint64_t checksum) {
    std::array<char, 17> digits{};
    std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(checksum));
    return digits.data();
}

}  // namespace headway::backend
