#include "scenarios/validation/table_node.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "scenarios/language/config_error.h"
#include "scenarios/language/nearest_name.h"

namespace headway::scenarios {

namespace {

std::string joined_names(const std::vector<std::string>& names) {
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
    return all;
}

}  // namespace

TableNode TableNode::parse(const std::string& text, const std::string& name) {
    auto root = std::make_shared<const YamlNode>(parse_yaml(text, name));
    return TableNode(root, root.get(), root->place, "");
}

void TableNode::fail(const std::string& message) const {
    throw path_.empty() ? ConfigError(place_.text() + ": " + message) : error_at(place_, path_, message);
}

void TableNode::fail_choice(const std::string& chosen, const std::vector<std::string>& names) const {
    fail("'" + chosen + "' is not allowed (one of " + joined_names(names) + ")" + did_you_mean(chosen, names));
}

std::vector<std::pair<std::string, TableNode>> TableNode::entries() const {
    if (!node_->is_map()) fail("expected a map of keys and values");
    std::vector<std::pair<std::string, TableNode>> found;
    for (std::size_t index = 0; index < node_->keys.size(); ++index) {
        const auto& [key, place] = node_->keys[index];
        found.emplace_back(key, TableNode(root_, &node_->items[index], place, path_of(key)));
    }
    return found;
}

void TableNode::expect_keys(const std::vector<std::string>& known) const {
    for (const auto& [key, value] : entries()) {
        if (std::find(known.begin(), known.end(), key) != known.end()) continue;
        const std::string guess = did_you_mean(key, known);
        throw ConfigError(value.place_.text() + ": unknown key '" + key + "' in " +
                          (path_.empty() ? "the table" : path_) +
                          (guess.empty() ? " (known: " + joined_names(known) + ")" : guess));
    }
}

bool TableNode::has(const std::string& key) const {
    return node_->is_map() && node_->find(key) != nullptr;
}

TableNode TableNode::at(const std::string& key) const {
    if (!node_->is_map()) fail("expected a map with the key '" + key + "'");
    const YamlNode* value = node_->find(key);
    if (value == nullptr) fail("the key '" + key + "' is missing");
    return TableNode(root_, value, value->place, path_of(key));
}

TableNode TableNode::at_or_in(const std::string& key, const TableNode& fallback) const {
    return has(key) || !fallback.has(key) ? at(key) : fallback.at(key);
}

std::vector<TableNode> TableNode::items() const {
    if (!node_->is_list()) fail("expected a list");
    std::vector<TableNode> found;
    found.reserve(node_->items.size());
    for (const YamlNode& item : node_->items) {
        found.push_back(TableNode(root_, &item, item.place, path_ + "[" + std::to_string(found.size()) + "]"));
    }
    return found;
}

std::string TableNode::text() const {
    if (!node_->is_scalar()) fail("expected a single value");
    return node_->text;
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
