#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

/// Values as bytes, between processes of one build on machines of one kind.
namespace headway::backend {

class PacketWriter {
  public:
    template <class T>
    PacketWriter& put(const T& value) {
        static_assert(std::is_trivially_copyable_v<T>);
        append(&value, sizeof value);
        return *this;
    }
    template <class T>
    PacketWriter& put(const std::vector<T>& values) {
        static_assert(std::is_trivially_copyable_v<T>);
        put<std::uint64_t>(values.size());
        append(values.data(), values.size() * sizeof(T));
        return *this;
    }
    PacketWriter& put(const std::string& text) {
        put<std::uint64_t>(text.size());
        append(text.data(), text.size());
        return *this;
    }
    std::vector<char> take() { return std::move(bytes_); }

  private:
    void append(const void* data, std::size_t size) {
        const auto* const begin = static_cast<const char*>(data);
        bytes_.insert(bytes_.end(), begin, begin + size);
    }
    std::vector<char> bytes_;
};

/// Throws std::runtime_error where the bytes end too early.
class PacketReader {
  public:
    explicit PacketReader(const std::vector<char>& bytes) : bytes_(bytes) {}

    template <class T>
    T take() {
        T value{};
        if constexpr (std::is_same_v<T, std::string>) {
            value.resize(count(1));
            copy(value.data(), value.size());
        } else if constexpr (requires { typename T::allocator_type; }) {
            value.resize(count(sizeof(typename T::value_type)));
            copy(value.data(), value.size() * sizeof(typename T::value_type));
        } else {
            static_assert(std::is_trivially_copyable_v<T>);
            copy(&value, sizeof value);
        }
        return value;
    }

  private:
    std::size_t count(std::size_t size_of_one) {
        const auto many = take<std::uint64_t>();
        if (many > (bytes_.size() - at_) / size_of_one) throw std::runtime_error("a packet between processes is cut");
        return static_cast<std::size_t>(many);
    }
    void copy(void* to, std::size_t size) {
        if (size > bytes_.size() - at_) throw std::runtime_error("a packet between processes is cut");
        if (size > 0) std::memcpy(to, bytes_.data() + at_, size);
        at_ += size;
    }
    const std::vector<char>& bytes_;
    std::size_t at_ = 0;
};

}  // namespace headway::backend
