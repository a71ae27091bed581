#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace headway::backend {

/// XXH3, 64 bits (Y. Collet, xxHash 0.8): finds accidents, not attacks, at the speed of memory.
std::uint64_t checksum_of(std::span<const std::byte> bytes);
inline std::uint64_t checksum_of(const std::string& text) {
    return checksum_of(std::as_bytes(std::span(text)));
}

/// 16 hexadecimal digits.
std::string checksum_text(std::uint64_t checksum);

}  // namespace headway::backend
