#include "scenarios/validation/table_node.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "scenarios/language/config_error.h"
#include "scenarios/language/nearest_name.h"

namespace headway::scenarios {

namespace {

std::string table_position(const std::string& file, const YAML::Mark& mark) {
    if (mark.is_null()) return file + ": ";
    return file + ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1) + ": ";
}

std::string joined_names(const std::vector<std::string>& names) {
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
    return all;
}

}  // namespace

TableNode TableNode::parse(const std::string& text, const std::string& name) {
    try {
        const YAML::Node root = YAML::Load(text);
        return TableNode(name, "", root, root.Mark());
    } catch (const YAML::Exception& error) {
        throw ConfigError(table_position(name, error.mark) + "not valid YAML: " + error.msg);
    }
}

void TableNode::fail(const std::string& message) const {
    throw ConfigError(table_position(file_, mark_) + (path_.empty() ? "" : path_ + ": ") + message);
}

void TableNode::fail_choice(const std::string& chosen, const std::vector<std::string>& names) const {
    fail("'" + chosen + "' is not allowed (one of " + joined_names(names) + ")" + did_you_mean(chosen, names));
}

std::vector<std::pair<std::string, TableNode>> TableNode::entries() const {
    if (!node_.IsMap()) fail("expected a map of keys and values");
    std::vector<std::pair<std::string, TableNode>> found;
    std::set<std::string> seen;
    for (const auto& entry : node_) {
        if (!entry.first.IsScalar()) fail("a key is not a plain word");
        const std::string key = entry.first.Scalar();
        const TableNode value(file_, path_.empty() ? key : path_ + "." + key, entry.second, entry.first.Mark());
        if (!seen.insert(key).second) value.fail("given twice");
        found.emplace_back(key, value);
    }
    return found;
}

void TableNode::expect_keys(const std::vector<std::string>& known) const {
    for (const auto& [key, value] : entries()) {
        if (std::find(known.begin(), known.end(), key) != known.end()) continue;
        const std::string where = path_.empty() ? "the table" : path_;
        const std::string guess = did_you_mean(key, known);
        throw ConfigError(table_position(file_, value.mark_) + "unknown key '" + key + "' in " + where +
                          (guess.empty() ? " (known: " + joined_names(known) + ")" : guess));
    }
}

bool TableNode::has(const std::string& key) const {
    return node_.IsMap() && node_[key].IsDefined();
}

TableNode TableNode::at(const std::string& key) const {
    if (!node_.IsMap()) fail("expected a map with the key '" + key + "'");
    const YAML::Node value = node_[key];
    if (!value.IsDefined()) fail("the key '" + key + "' is missing");
    return TableNode(file_, path_.empty() ? key : path_ + "." + key, value, value.Mark());
}

TableNode TableNode::at_or_in(const std::string& key, const TableNode& fallback) const {
    return has(key) || !fallback.has(key) ? at(key) : fallback.at(key);
}

std::vector<TableNode> TableNode::items() const {
    if (!node_.IsSequence()) fail("expected a list");
    std::vector<TableNode> found;
    found.reserve(node_.size());
    for (const auto& item : node_) {
        found.push_back(TableNode(file_, path_ + "[" + std::to_string(found.size()) + "]", item, item.Mark()));
    }
    return found;
}

std::string TableNode::text() const {
    if (!node_.IsScalar()) fail("expected a single value");
    return node_.Scalar();
}

bool TableNode::boolean() const {
    const std::string value = text();
    if (value == "true") return true;
    if (value == "false") return false;
    fail("'" + value + "' is not allowed (true or false)");
}

std::int64_t TableNode::long_integer(std::int64_t least) const {
    const std::string value = text();
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size()) {
        fail("'" + value + "' is not allowed (a whole number, at least " + std::to_string(least) + ")");
    }
    if (number < least) fail(value + " is not allowed (at least " + std::to_string(least) + ")");
    return number;
}

int TableNode::integer(int least, int most) const {
    const std::int64_t number = long_integer(least);
    if (number > most) fail(std::to_string(number) + " is not allowed (at most " + std::to_string(most) + ")");
    return static_cast<int>(number);
}

double TableNode::number(const char* allowed) const {
    const std::string value = text();
    double number = 0.0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || !std::isfinite(number)) {
        fail("'" + value + "' is not allowed (" + allowed + ")");
    }
    return number;
}

double TableNode::positive() const {
    const double value = number("a number above 0");
    if (value <= 0.0) fail(text() + " is not allowed (a number above 0)");
    return value;
}

double TableNode::not_negative() const {
    const double value = number("a number, at least 0");
    if (value < 0.0) fail(text() + " is not allowed (a number, at least 0)");
    return value;
}

}  // namespace headway::scenarios
