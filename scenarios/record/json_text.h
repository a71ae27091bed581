#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headway::scenarios {

/// Writes JSON text: keys in the order given, no blanks, integers as they are, doubles by the shortest text that reads
/// back to the same value. Bytes that are not UTF-8 become U+FFFD. Throws std::invalid_argument, naming the key, for a
/// double that is not finite. The caller keeps the nesting right.
class JsonText {
  public:
    JsonText& begin_object() { return open('{'); }
    JsonText& end_object() { return close('}'); }
    JsonText& begin_array() { return open('['); }
    JsonText& end_array() { return close(']'); }
    JsonText& key(std::string_view name);

    JsonText& value(std::string_view text);
    JsonText& value(const char* text) { return value(std::string_view(text)); }
    JsonText& value(const std::string& text) { return value(std::string_view(text)); }
    JsonText& value(double number);
    JsonText& value(bool flag);
    template <std::integral I>
    JsonText& value(I number) {
        if constexpr (std::signed_integral<I>) {
            return integer(static_cast<std::int64_t>(number));
        } else {
            return natural(static_cast<std::uint64_t>(number));
        }
    }
    JsonText& null();
    template <class T>
    JsonText& value(const std::optional<T>& maybe) {
        return maybe ? value(*maybe) : null();
    }
    template <class T>
    JsonText& value(const std::vector<T>& list) {
        begin_array();
        for (const T& item : list) value(item);
        return end_array();
    }

    template <class T>
    JsonText& field(std::string_view name, const T& content) {
        return key(name).value(content);
    }

    const std::string& text() const { return text_; }
    /// The text so far; starts anew.
    std::string take();

  private:
    JsonText& open(char bracket);
    JsonText& close(char bracket);
    JsonText& integer(std::int64_t number);
    JsonText& natural(std::uint64_t number);
    void separate();
    void quote(std::string_view text);

    std::string text_;
    std::string last_key_;
    bool comma_ = false;  ///< the next key or value needs one before it
};

}  // namespace headway::scenarios
