#pragma once

#include <optional>
#include <string>
#include <type_traits>

#include "scenarios/language/fields.h"
#include "scenarios/language/value_text.h"

/// Writes a struct as YAML by its field list: the visitor of fields.h that writes. Block style, two spaces a level,
/// keys in the order of the list, every value written; the same struct always gives the same bytes.
namespace headway::scenarios {

/// A text as a YAML scalar: plain where that is safe, otherwise in double quotes.
std::string yaml_text(const std::string& text);

class FieldWriter {
  public:
    FieldWriter(std::string& out, int indent) : out_(out), indent_(indent) {}

    template <class T>
    void field(const char* key, T& member, const Bounds& = {}) {
        write(key, member);
    }
    template <class T>
    void required(const char* key, T& member, const Bounds& = {}) {
        write(key, member);
    }
    template <class T>
    void catalogued(const char* key, T& member, const char*) {
        write(key, member);
    }

    void index(const char* key, int& member) {
        if (member >= 0) write(key, member);
    }
    void name(std::string& member) { write("name", member); }
    void refuse(const char*, const char*) {}

    template <class List>
    void group(const char* key, List list) {
        line(std::string(key) + ":");
        FieldWriter inner(out_, indent_ + 2);
        list(inner);
    }

    template <class T>
    void value_or_auto(const char* key, T& member, bool& open, const Bounds&) {
        if (open)
            line(std::string(key) + ": auto");
        else
            write(key, member);
    }
    void only_auto(const char* key, bool& open, const char*) {
        if (open) line(std::string(key) + ": auto");
    }

    void list_or_word(const char* key, std::vector<int>& member, const char* word, const Bounds&) {
        if (member.empty())
            line(std::string(key) + ": " + word);
        else
            write(key, member);
    }

    template <class Row>
    void rows(const char* key, std::vector<Row>& member);

    void node_groups(std::vector<NodeGroup>& member) { write("node_groups", member); }

    void cause(Cause& member) {
        const char* kind = kCauseKinds[member.index()];
        std::visit([&](auto& cause) { write(kind, cause); }, member);
    }

  private:
    template <class T>
    static constexpr bool kHasFields = requires(FieldWriter& writer, T& value) {
        fields(writer, value);
    };

    void line(const std::string& text) {
        out_.append(static_cast<std::size_t>(indent_), ' ').append(text).append("\n");
    }

    template <class T>
    static std::string scalar(const T& value) {
        if constexpr (std::is_same_v<T, std::string>)
            return yaml_text(value);
        else if constexpr (std::is_same_v<T, bool>)
            return value ? "true" : "false";
        else if constexpr (HasWords<T>)
            return std::string(word_of(value));
        else
            return format_value(value);
    }

    template <class T>
    void write(const char* key, std::optional<T>& member) {
        if (member) write(key, *member);
    }

    template <class T>
    void write(const char* key, std::vector<T>& member) {
        if constexpr (kHasFields<T>) {
            if (member.empty()) {
                line(std::string(key) + ": []");
                return;
            }
            line(std::string(key) + ":");
            for (T& item : member) {
                const std::size_t begin = out_.size();
                FieldWriter inner(out_, indent_ + 4);
                fields(inner, item);
                out_[begin + static_cast<std::size_t>(indent_) + 2] = '-';
            }
        } else {
            std::string text;
            for (const T& item : member) text += (text.empty() ? "" : ", ") + scalar(item);
            line(std::string(key) + ": [" + text + "]");
        }
    }

    template <class T>
    void write(const char* key, T& member) {
        if constexpr (kHasFields<T>) {
            line(std::string(key) + ":");
            FieldWriter inner(out_, indent_ + 2);
            fields(inner, member);
        } else {
            line(std::string(key) + ": " + scalar(member));
        }
    }

    std::string& out_;
    int indent_;
};

/// Writes a flat struct on one line: {time: 0 s, factor: 0.5}.
class RowWriter {
  public:
    explicit RowWriter(std::string& out) : out_(out) {}
    template <class T>
    void field(const char* key, T& member, const Bounds& = {}) {
        out_ += (first_ ? "" : ", ") + std::string(key) + ": " + format_value(member);
        first_ = false;
    }
    template <class T>
    void required(const char* key, T& member, const Bounds& bounds = {}) {
        field(key, member, bounds);
    }

  private:
    std::string& out_;
    bool first_ = true;
};

template <class Row>
void FieldWriter::rows(const char* key, std::vector<Row>& member) {
    if (member.empty()) return;
    line(std::string(key) + ":");
    for (Row& row : member) {
        std::string text;
        RowWriter writer(text);
        fields(writer, row);
        line("  - {" + text + "}");
    }
}

}  // namespace headway::scenarios
