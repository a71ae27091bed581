#include "policies/learning/framed_file.h"

#include <array>

#include "policies/learning/byte_stream.h"
#include "policies/learning/features.h"
#include "scenarios/language/config_error.h"

namespace headway::policies {

namespace {

constexpr std::array<std::uint32_t, 256> crc_table() {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < table.size(); ++i) {
        std::uint32_t value = i;
        for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) ? 0xEDB88320u : 0u);
        table[i] = value;
    }
    return table;
}

}  // namespace

std::uint32_t crc32(std::string_view bytes) {
    static constexpr auto kTable = crc_table();
    std::uint32_t value = 0xFFFFFFFFu;
    for (const char c : bytes) value = kTable[(value ^ static_cast<unsigned char>(c)) & 0xFFu] ^ (value >> 8);
    return value ^ 0xFFFFFFFFu;
}

std::string framed_bytes(const FileFrame& frame, std::string_view content) {
    ByteWriter out;
    out.characters(frame.magic);
    out.number<std::uint32_t>(frame.version);
    out.number<std::uint32_t>(kFeatureSet);
    out.characters(content);
    out.number(crc32(out.bytes()));
    return out.take();
}

std::string_view unframed_bytes(const FileFrame& frame, std::string_view bytes, const std::string& name) {
    using scenarios::ConfigError;
    const std::string what(frame.what);
    if (!bytes.starts_with(frame.magic)) {
        throw ConfigError(name + ": not a " + what + " (it does not begin with " + std::string(frame.magic) + ")");
    }
    const std::size_t header = frame.magic.size() + 8;
    if (bytes.size() < header + 4) throw ConfigError(name + ": the " + what + " is cut short: copy it again");
    ByteReader numbers(bytes.substr(frame.magic.size(), 8));
    const auto version = numbers.number<std::uint32_t>();
    const auto features = numbers.number<std::uint32_t>();
    if (version != frame.version) {
        throw ConfigError(name + ": " + what + " of format version " + std::to_string(version) +
                          ", this program reads version " + std::to_string(frame.version) + ": train it again");
    }
    const auto stored = ByteReader(bytes.substr(bytes.size() - 4)).number<std::uint32_t>();
    if (crc32(bytes.substr(0, bytes.size() - 4)) != stored) {
        throw ConfigError(name + ": the " + what +
                          " is corrupt or cut short (its checksum does not match): copy it again");
    }
    if (features != kFeatureSet) {
        throw ConfigError(name + ": trained on feature set " + std::to_string(features) +
                          ", this program has feature set " + std::to_string(kFeatureSet) + ": train it again");
    }
    return bytes.substr(header, bytes.size() - 4 - header);
}

}  // namespace headway::policies
