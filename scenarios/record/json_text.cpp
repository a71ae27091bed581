#include "scenarios/record/json_text.h"

#include <charconv>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace headway::scenarios {

namespace {

/// Length of the well-formed UTF-8 sequence that `text` begins with; 0 when it begins with none (RFC 3629).
std::size_t utf8_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
    const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
    const unsigned first = byte(0);
    if (first < 0x80) return 1;
    if (first >= 0xC2 && first <= 0xDF) return continues(1) ? 2 : 0;
    if (first >= 0xE0 && first <= 0xEF) {
        if (!continues(1) || !continues(2)) return 0;
        if (first == 0xE0 && byte(1) < 0xA0) return 0;  // overlong
        if (first == 0xED && byte(1) > 0x9F) return 0;  // surrogate
        return 3;
    }
    if (first >= 0xF0 && first <= 0xF4) {
        if (!continues(1) || !continues(2) || !continues(3)) return 0;
        if (first == 0xF0 && byte(1) < 0x90) return 0;  // overlong
        if (first == 0xF4 && byte(1) > 0x8F) return 0;  // beyond U+10FFFF
        return 4;
    }
    return 0;
}

}  // namespace

JsonText& JsonText::key(std::string_view name) {
    separate();
    quote(name);
    text_ += ':';
    last_key_ = name;
    comma_ = false;
    return *this;
}

JsonText& JsonText::value(std::string_view content) {
    separate();
    quote(content);
    comma_ = true;
    return *this;
}

JsonText& JsonText::value(double number) {
    if (!std::isfinite(number)) throw std::invalid_argument(last_key_ + ": a number that is not finite");
    separate();
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    text_.append(digits, end);
    comma_ = true;
    return *this;
}

JsonText& JsonText::value(bool flag) {
    separate();
    text_ += flag ? "true" : "false";
    comma_ = true;
    return *this;
}

JsonText& JsonText::null() {
    separate();
    text_ += "null";
    comma_ = true;
    return *this;
}

std::string JsonText::take() {
    comma_ = false;
    return std::exchange(text_, {});
}

JsonText& JsonText::open(char bracket) {
    separate();
    text_ += bracket;
    comma_ = false;
    return *this;
}

JsonText& JsonText::close(char bracket) {
    text_ += bracket;
    comma_ = true;
    return *this;
}

JsonText& JsonText::integer(std::int64_t number) {
    separate();
    char digits[24];
    text_.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
    comma_ = true;
    return *this;
}

JsonText& JsonText::natural(std::uint64_t number) {
    separate();
    char digits[24];
    text_.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
    comma_ = true;
    return *this;
}

void JsonText::separate() {
    if (comma_) text_ += ',';
}

void JsonText::quote(std::string_view content) {
    text_ += '"';
    while (!content.empty()) {
        const char c = content.front();
        const std::size_t length = utf8_length(content);
        if (c == '"' || c == '\\') {
            text_ += '\\';
            text_ += c;
        } else if (c == '\n') {
            text_ += "\\n";
        } else if (c == '\t') {
            text_ += "\\t";
        } else if (static_cast<unsigned char>(c) < 0x20) {
            constexpr char kHex[] = "0123456789abcdef";
            text_ += "\\u00";
            text_ += kHex[(c >> 4) & 0xF];
            text_ += kHex[c & 0xF];
        } else if (length == 0) {
            text_ += "\xEF\xBF\xBD";  // U+FFFD
        } else {
            text_.append(content.substr(0, length));
        }
        content.remove_prefix(length == 0 ? 1 : length);
    }
    text_ += '"';
}

}  // namespace headway::scenarios
