#pragma once

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>

#include "scenarios/language/csv.h"
#include "scenarios/language/fields.h"
#include "scenarios/language/nearest_name.h"
#include "scenarios/language/read_context.h"
#include "scenarios/language/value_text.h"

/// Reads a struct from a YAML map by its field list: the visitor of fields.h that reads and checks.
namespace headway::scenarios {

template <class T>
void read_value(ReadContext& context, YamlNode& node, const std::string& path, T& value, const Bounds& bounds);

class FieldReader {
  public:
    FieldReader(ReadContext& context, YamlNode& map, std::string path)
        : context_(context), map_(map), path_(std::move(path)) {}

    template <class T>
    void field(const char* key, T& member, const Bounds& bounds = {}) {
        if (YamlNode* node = find(key)) read_value(context_, *node, join_path(path_, key), member, bounds);
    }

    template <class T>
    void required(const char* key, T& member, const Bounds& bounds = {}) {
        YamlNode* node = find(key);
        if (!node) throw missing(key);
        read_value(context_, *node, join_path(path_, key), member, bounds);
    }

    void index(const char* key, int& member) { field(key, member, at_least(0)); }

    void name(std::string& member) { field("name", member); }

    template <class List>
    void group(const char* key, List list) {
        YamlNode* node = find(key);
        if (!node) return;
        check_map(context_, *node, join_path(path_, key));
        FieldReader inner(context_, *node, join_path(path_, key));
        list(inner);
        inner.finish();
    }

    template <class T>
    void catalogued(const char* key, T& member, const char* kind) {
        YamlNode* node = find(key);
        const std::string path = join_path(path_, key);
        if (!node) throw missing(key);
        const YamlPlace asked = node->place;
        resolve_entry(context_.catalogue, *node, kind, path);
        apply_overrides(context_, *node, path);
        read_value(context_, *node, path, member, {});
        context_.places.add(path, asked.text());
    }

    template <class T>
    void value_or_auto(const char* key, T& member, bool& open, const Bounds& bounds) {
        YamlNode* node = find(key);
        if (node && node->is_scalar() && node->text == "auto") {
            context_.places.add(join_path(path_, key), node->place.text());
            open = true;
        } else if (node) {
            read_value(context_, *node, join_path(path_, key), member, bounds);
        }
    }

    void only_auto(const char* key, bool& open, const char* why) {
        const YamlNode* node = find(key);
        if (!node) return;
        const std::string path = join_path(path_, key);
        if (!node->is_scalar() || node->text != "auto")
            throw error_at(node->place, path, node->shown() + " is not allowed (auto; " + why + ")");
        context_.places.add(path, node->place.text());
        open = true;
    }

    void list_or_word(const char* key, std::vector<int>& member, const char* word, const Bounds& bounds) {
        YamlNode* node = find(key);
        if (!node) return;
        const std::string path = join_path(path_, key);
        if (node->is_scalar() && node->text == word) {
            member.clear();
            context_.places.add(path, node->place.text());
            return;
        }
        if (!node->is_list() || node->items.empty()) {
            throw error_at(node->place, path,
                           node->shown() + " is not allowed (a list of whole numbers, or " + word + ")");
        }
        read_value(context_, *node, path, member, bounds);
    }

    template <class Row>
    void rows(const char* key, std::vector<Row>& member) {
        YamlNode* node = find(key);
        if (!node) return;
        const std::string path = join_path(path_, key);
        if (node->is_scalar()) {
            context_.places.add(path, node->place.text());
            read_csv_rows(context_.folder / node->text, node->place.text() + ": " + path, member);
        } else {
            read_value(context_, *node, path, member, {});
        }
    }

    void refuse(const char* key, const char* why) {
        if (const YamlNode* node = map_.find(key))
            throw error_at(node->place, join_path(path_, key), std::string("not allowed: ") + why);
    }

    /// `node_groups`, or for a cluster of equal nodes `nodes: COUNT` and `node`.
    void node_groups(std::vector<NodeGroup>& member) {
        YamlNode* count = find("nodes");
        YamlNode* node = find("node");
        YamlNode* groups = find("node_groups");
        if (groups && (count || node)) {
            const YamlNode* other = count ? count : node;
            throw error_at(other->place, join_path(path_, count ? "nodes" : "node"),
                           "not allowed beside node_groups (change the group in node_groups)");
        }
        if (groups) {
            read_value(context_, *groups, join_path(path_, "node_groups"), member, {});
            return;
        }
        if (!count) throw missing("nodes");
        if (!node) throw missing("node");
        member.resize(1);
        read_value(context_, *count, join_path(path_, "nodes"), member[0].count, between(1, 1'000'000));
        read_value(context_, *node, join_path(path_, "node"), member[0].node, {});
    }

    /// Exactly one of the kinds of causes, as a key.
    void cause(Cause& member) {
        std::string given;
        for (const char* kind : kCauseKinds) {
            if (!map_.find(kind)) continue;
            if (!given.empty())
                throw error_at(map_.place, path_,
                               "two causes, " + given + " and " + kind + " (write two disturbances)");
            given = kind;
        }
        read_cause(member, given, std::make_index_sequence<std::variant_size_v<Cause>>{});
        if (given.empty()) {
            finish();  // a misspelt cause is reported as such
            throw error_at(map_.place, path_, "no cause (one of " + all_causes() + ")");
        }
    }

    /// Throws for the first key that no call asked for.
    void finish() const {
        for (const auto& [key, place] : map_.keys) {
            if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
            YamlNode shown;
            shown.kind = YamlNode::Kind::kScalar;
            shown.text = key;
            throw error_at(place, "",
                           "unknown key '" + shown.shown() + "' in " + (path_.empty() ? "the scenario" : path_) +
                               suggestion(key, known_));
        }
    }

    static void check_map(ReadContext& context, const YamlNode& node, const std::string& path) {
        context.places.add(path, node.place.text());
        if (!node.is_map()) throw error_at(node.place, path, "a map of keys is needed, not " + node.shown());
    }

  private:
    YamlNode* find(const char* key) {
        known_.emplace_back(key);
        return map_.find(key);
    }

    ConfigError missing(const char* key) const { return error_at(map_.place, join_path(path_, key), "missing"); }

    static std::string all_causes() {
        std::string text;
        for (const char* kind : kCauseKinds) text += (text.empty() ? "" : ", ") + std::string(kind);
        return text;
    }

    template <std::size_t... I>
    void read_cause(Cause& member, const std::string& given, std::index_sequence<I...>) {
        const auto one = [&]<std::size_t K>(std::integral_constant<std::size_t, K>) {
            if (kCauseKinds[K] == given)
                required(kCauseKinds[K], member.emplace<K>());
            else
                known_.emplace_back(kCauseKinds[K]);
        };
        (one(std::integral_constant<std::size_t, I>{}), ...);
    }

    ReadContext& context_;
    YamlNode& map_;
    std::string path_;
    std::vector<std::string> known_;
};

template <class T>
concept HasFields = requires(FieldReader& reader, T& value) {
    fields(reader, value);
};

namespace read_detail {

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};

[[noreturn]] inline void not_allowed(const YamlNode& node, const std::string& path, const std::string& allowed) {
    throw error_at(node.place, path, node.shown() + " is not allowed (" + allowed + ")");
}

inline const std::string& scalar_text(const YamlNode& node, const std::string& path, const std::string& allowed) {
    if (!node.is_scalar()) not_allowed(node, path, allowed);
    return node.text;
}

inline std::string auto_hint(const YamlNode& node) {
    return node.is_scalar() && node.text == "auto"
               ? "; nothing chooses this one, the degrees, schedule and recompute of "
                 "strategy may be auto"
               : "";
}

inline std::optional<int> parse_int(const std::string& text) {
    const auto value = parse_integer(text);
    if (!value || *value < std::numeric_limits<int>::min() || *value > std::numeric_limits<int>::max())
        return std::nullopt;
    return static_cast<int>(*value);
}

template <class T>
void assign(const YamlNode& node, const std::string& path, T& value, const std::optional<T>& parsed,
            const std::string& form, const Bounds& bounds) {
    if (!parsed) not_allowed(node, path, form + auto_hint(node));
    if (!bounds.contains(bound_value(*parsed))) not_allowed(node, path, bounds.allowed);
    value = *parsed;
}

}  // namespace read_detail

/// A value without keys of its own: a number, a word, a text, a list.
template <class T>
void read_plain(ReadContext& context, YamlNode& node, const std::string& path, T& value, const Bounds& bounds) {
    using namespace read_detail;
    context.places.add(path, node.place.text());
    if constexpr (IsVector<T>::value) {
        if (!node.is_list()) not_allowed(node, path, "a list");
        value.clear();
        value.resize(node.items.size());
        for (std::size_t i = 0; i < value.size(); ++i)
            read_value(context, node.items[i], join_path(path, std::to_string(i)), value[i], bounds);
    } else if constexpr (std::is_same_v<T, std::string>) {
        value = scalar_text(node, path, "a text");
        if (value.size() > 10'000) not_allowed(node, path, "a text of at most 10000 characters");
    } else if constexpr (std::is_same_v<T, bool>) {
        const std::string& text = scalar_text(node, path, "true or false");
        if (text != "true" && text != "false") not_allowed(node, path, "true or false");
        value = text == "true";
    } else if constexpr (HasWords<T>) {
        const auto parsed = parse_word<T>(scalar_text(node, path, all_words<T>()));
        if (!parsed) not_allowed(node, path, all_words<T>() + auto_hint(node));
        value = *parsed;
    } else if constexpr (QuantityType<T>) {
        const std::string form = quantity_form(T{});
        assign(node, path, value, parse_quantity(scalar_text(node, path, form), T{}), form, bounds);
    } else if constexpr (std::is_same_v<T, double>) {
        const std::string form = "a number, " + bounds.allowed;
        assign(node, path, value, parse_number(scalar_text(node, path, form)), form, bounds);
    } else if constexpr (std::is_same_v<T, std::uint64_t>) {
        const std::string form = "a whole number from 0 to 18446744073709551615";
        assign(node, path, value, parse_unsigned(scalar_text(node, path, form)), form, bounds);
    } else if constexpr (std::is_same_v<T, int>) {
        const std::string form = "a whole number, " + bounds.allowed;
        assign(node, path, value, parse_int(scalar_text(node, path, form)), form, bounds);
    } else {
        static_assert(std::is_same_v<T, std::int64_t>, "a type the language does not know");
        const std::string form = "a whole number, " + bounds.allowed;
        assign(node, path, value, parse_integer(scalar_text(node, path, form)), form, bounds);
    }
}

template <class T>
void read_value(ReadContext& context, YamlNode& node, const std::string& path, T& value, const Bounds& bounds) {
    if constexpr (read_detail::IsOptional<T>::value) {
        value.emplace();
        read_value(context, node, path, *value, bounds);
    } else if constexpr (HasFields<T>) {
        FieldReader::check_map(context, node, path);
        FieldReader reader(context, node, path);
        fields(reader, value);
        reader.finish();
    } else {
        read_plain(context, node, path, value, bounds);
    }
}

}  // namespace headway::scenarios
