#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/language/yaml_tree.h"

namespace headway::scenarios {

/// One place in a table's YAML: knows its file, line and key path, and reads strictly. Every error is a ConfigError.
class TableNode {
  public:
    /// Parses `text`; `name` stands for the file in messages.
    static TableNode parse(const std::string& text, const std::string& name);

    [[noreturn]] void fail(const std::string& message) const;

    /// Fails unless this is a map whose keys are all among `known` and none is given twice.
    void expect_keys(const std::vector<std::string>& known) const;
    bool has(const std::string& key) const;
    /// Fails when the key is missing.
    TableNode at(const std::string& key) const;
    /// The key's place here or, where it is missing, in `fallback` (a table gives what its rows share).
    TableNode at_or_in(const std::string& key, const TableNode& fallback) const;
    std::vector<TableNode> items() const;
    std::vector<std::pair<std::string, TableNode>> entries() const;

    std::string text() const;
    bool boolean() const;
    int integer(int least, int most = std::numeric_limits<int>::max()) const;
    std::int64_t long_integer(std::int64_t least) const;
    double positive() const;
    double not_negative() const;

    /// Value of the entry of `choices` with this text; fails naming all of them.
    template <class Value>
    Value choice(const std::vector<std::pair<std::string, Value>>& choices) const {
        const std::string chosen = text();
        std::vector<std::string> names;
        for (const auto& [name, value] : choices) {
            if (name == chosen) return value;
            names.push_back(name);
        }
        fail_choice(chosen, names);
    }

  private:
    using Root = std::shared_ptr<const YamlNode>;
    TableNode(Root root, const YamlNode* node, YamlPlace place, std::string path)
        : root_(std::move(root)), node_(node), place_(std::move(place)), path_(std::move(path)) {}
    std::string path_of(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }
    [[noreturn]] void fail_choice(const std::string& chosen, const std::vector<std::string>& names) const;
    double number(const char* allowed) const;

    Root root_;  ///< keeps the tree
    const YamlNode* node_;
    YamlPlace place_;   ///< of the value; of the key where the key is what is wrong
    std::string path_;  ///< "rows[3].layout.tensor"
};

}  // namespace headway::scenarios
