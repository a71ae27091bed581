#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/language/config_error.h"

/// A YAML document as a plain tree with the place of every node, without the parts of YAML that this language has no
/// use for: anchors, aliases, tags, several documents and duplicate keys are errors, and depth and size are limited.
namespace headway::scenarios {

struct YamlPlace {
    std::shared_ptr<const std::string> name;  ///< file, or "--set KEY=VALUE" (then `line` is 0)
    int line = 0;                             ///< from 1
    int column = 0;
    /// "straggler.yaml:14:9"
    std::string text() const;
};

struct YamlNode {
    enum class Kind { kEmpty, kScalar, kList, kMap };
    Kind kind = Kind::kEmpty;
    YamlPlace place;
    std::string text;                                     ///< of a scalar
    std::vector<std::pair<std::string, YamlPlace>> keys;  ///< of a map, in order
    std::vector<YamlNode> items;                          ///< of a list, or the values of a map

    bool is_scalar() const { return kind == Kind::kScalar; }
    bool is_list() const { return kind == Kind::kList; }
    bool is_map() const { return kind == Kind::kMap; }
    /// Value of a map's key; null when there is none.
    YamlNode* find(const std::string& key);
    const YamlNode* find(const std::string& key) const;
    /// Sets a map's key, in its place when it exists.
    void set(const std::string& key, YamlNode value);
    void erase(const std::string& key);
    /// For messages: the scalar itself (shortened), "a list", "a map", "nothing".
    std::string shown() const;
};

/// Parses one document. `name` stands for the text in places. Throws ConfigError; an empty text is an error too.
YamlNode parse_yaml(const std::string& text, const std::string& name);

/// "place: path: message" as a ConfigError.
ConfigError error_at(const YamlPlace& place, const std::string& path, const std::string& message);

}  // namespace headway::scenarios
