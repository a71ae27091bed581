#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace headway::policies {

static_assert(std::endian::native == std::endian::little, "policy files are little-endian");

/// Numbers and texts as bytes, little-endian, lengths as 64 bits in front.
class ByteWriter {
  public:
    template <class T>
    requires std::is_arithmetic_v<T>
    void number(T value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T)); }
    void characters(std::string_view text) { bytes_.append(text); }
    void text(std::string_view text) {
        number<std::uint64_t>(text.size());
        bytes_.append(text);
    }
    template <class T>
    void numbers(const std::vector<T>& values) {
        number<std::uint64_t>(values.size());
        bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    }
    std::string_view bytes() const { return bytes_; }
    std::string take() { return std::move(bytes_); }

  private:
    std::string bytes_;
};

/// Reads them back. Throws std::runtime_error("unexpected end") past the last byte.
class ByteReader {
  public:
    explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}
    template <class T>
    requires std::is_arithmetic_v<T> T number() {
        T value;
        std::memcpy(&value, next(sizeof(T)).data(), sizeof(T));
        return value;
    }
    std::string text() { return std::string(next(number<std::uint64_t>())); }
    template <class T = double>
    std::vector<T> numbers() {
        const auto count = number<std::uint64_t>();
        if (count > bytes_.size() / sizeof(T)) throw std::runtime_error("unexpected end");
        std::vector<T> values(count);
        if (count > 0) std::memcpy(values.data(), next(count * sizeof(T)).data(), count * sizeof(T));
        return values;
    }
    bool at_end() const { return bytes_.empty(); }

  private:
    std::string_view next(std::uint64_t count) {
        if (count > bytes_.size()) throw std::runtime_error("unexpected end");
        const std::string_view taken = bytes_.substr(0, count);
        bytes_.remove_prefix(count);
        return taken;
    }
    std::string_view bytes_;
};

}  // namespace headway::policies
