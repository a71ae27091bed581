#include <algorithm>

#include "scenarios/language/read_context.h"
#include "scenarios/language/value_text.h"

namespace headway::scenarios {
namespace {

std::vector<std::string> split_keys(const std::string& path) {
    std::vector<std::string> keys(1);
    for (const char c : path) {
        if (c == '.')
            keys.emplace_back();
        else
            keys.back() += c;
    }
    return keys;
}

void set_places(YamlNode& node, const YamlPlace& place) {
    node.place = place;
    for (auto& key : node.keys) key.second = place;
    for (YamlNode& item : node.items) set_places(item, place);
}

bool is_index(const std::string& key) {
    return parse_unsigned(key).has_value();
}

/// Sets keys[at..] below `node`. False where the way ends in a value that may become a map later (a catalogue name).
bool set_below(YamlNode& node, const std::vector<std::string>& keys, std::size_t at, const YamlNode& value) {
    if (at == keys.size()) {
        node = value;
        return true;
    }
    const std::string& key = keys[at];
    if (node.is_list()) {
        const auto index = parse_unsigned(key);
        if (!index || *index > node.items.size()) {
            throw error_at(value.place, "",
                           "'" + key + "' is not an item of this list (it has " + std::to_string(node.items.size()) +
                               ", counted from 0)");
        }
        if (*index == node.items.size()) {
            node.items.emplace_back();
            node.items.back().place = value.place;
        }
        return set_below(node.items[*index], keys, at + 1, value);
    }
    if (node.is_scalar()) return false;
    if (!node.is_map()) {
        if (std::any_of(keys.begin() + static_cast<std::ptrdiff_t>(at), keys.end(), is_index)) return false;
        node.kind = YamlNode::Kind::kMap;
        node.place = value.place;
    }
    if (YamlNode* child = node.find(key)) return set_below(*child, keys, at + 1, value);
    if (std::any_of(keys.begin() + static_cast<std::ptrdiff_t>(at), keys.end(), is_index)) return false;
    YamlNode child;
    set_below(child, keys, at + 1, value);
    child.place = value.place;
    node.set(key, std::move(child));
    return true;
}

bool lies_below(const std::vector<std::string>& keys, const std::vector<std::string>& prefix) {
    return keys.size() > prefix.size() && std::equal(prefix.begin(), prefix.end(), keys.begin());
}

}  // namespace

std::vector<PendingOverride> parse_overrides(const std::vector<Override>& overrides) {
    std::vector<PendingOverride> pending;
    for (const auto& [key, text] : overrides) {
        const std::string option = "--set " + key + "=" + text;
        if (text.find_first_not_of(" \t") == std::string::npos)
            throw ConfigError(option + ": a value is missing (--set KEY=VALUE; an empty text is \"\")");
        PendingOverride made{split_keys(key), parse_yaml(text, option), false};
        set_places(made.value, {std::make_shared<const std::string>(option), 0, 0});
        for (const std::string& part : made.keys) {
            if (part.empty()) throw error_at(made.value.place, "", "the key must be a path such as job.micro_batch");
        }
        pending.push_back(std::move(made));
    }
    return pending;
}

void apply_overrides(ReadContext& context, YamlNode& node, const std::string& path) {
    const std::vector<std::string> prefix = path.empty() ? std::vector<std::string>{} : split_keys(path);
    for (PendingOverride& pending : context.overrides) {
        if (pending.applied || !lies_below(pending.keys, prefix)) continue;
        pending.applied = set_below(node, pending.keys, prefix.size(), pending.value);
    }
}

void check_all_applied(const ReadContext& context) {
    for (const PendingOverride& pending : context.overrides) {
        if (pending.applied) continue;
        std::string path;
        for (const std::string& key : pending.keys) path = join_path(path, key);
        throw error_at(pending.value.place, path, "the scenario has no such section or list item");
    }
}

}  // namespace headway::scenarios
