#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headway::policies {

/// What stands around the content of the learner's binary files: 8 bytes of magic, format version and feature set
/// (32 bits each, little-endian) before it, CRC-32 of all that behind it.
struct FileFrame {
    std::string_view magic;  ///< 8 characters
    std::string_view what;   ///< "policy file"
    std::uint32_t version = 1;
};

std::string framed_bytes(const FileFrame& frame, std::string_view content);
/// The content. Throws scenarios::ConfigError beginning with `name` for another kind of file, version or feature set
/// (naming both), and for bytes that are corrupt or cut short.
std::string_view unframed_bytes(const FileFrame& frame, std::string_view bytes, const std::string& name);

/// CRC-32 of IEEE 802.3 (reflected polynomial 0xEDB88320).
std::uint32_t crc32(std::string_view bytes);

}  // namespace headway::policies
