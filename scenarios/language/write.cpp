#include <algorithm>

#include "scenarios/language/field_writer.h"
#include "scenarios/language/read.h"

namespace headway::scenarios {

std::string yaml_text(const std::string& text) {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    const bool plain = !text.empty() && letter(text.front()) && text.back() != ' ' &&
                       std::all_of(text.begin(), text.end(), [&](char c) {
                           return letter(c) || (c >= '0' && c <= '9') || c == ' ' || c == '_' || c == '-' || c == '.' ||
                                  c == '/' || c == '+';
                       });
    std::string lower = text;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    const bool reserved = lower == "true" || lower == "false" || lower == "null" || lower == "yes" || lower == "no" ||
                          lower == "on" || lower == "off";
    if (plain && !reserved) return text;
    std::string quoted = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\')
            quoted += std::string("\\") + c;
        else if (c == '\n')
            quoted += "\\n";
        else if (c == '\t')
            quoted += "\\t";
        else if (byte < 0x20 || byte == 0x7f)
            quoted += std::string("\\x") + "0123456789abcdef"[byte >> 4] + "0123456789abcdef"[byte & 15];
        else
            quoted += c;
    }
    return quoted + "\"";
}

std::string write_scenario(const Scenario& scenario) {
    std::string out;
    Scenario copy = scenario;  // a field list takes its struct by reference, for reading and writing alike
    FieldWriter writer(out, 0);
    fields(writer, copy);
    return out;
}

}  // namespace headway::scenarios
