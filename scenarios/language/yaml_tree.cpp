#include "scenarios/language/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <sstream>

namespace headway::scenarios {
namespace {

constexpr std::size_t kDeepestYaml = 40;
constexpr std::size_t kLargestYamlText = 32u << 20;
constexpr std::size_t kMostYamlNodes = 3'000'000;

/// Builds the tree from the parser's events, so that yaml-cpp's own tree (which keeps duplicate keys and follows
/// aliases) is never made.
class YamlTreeBuilder final : public YAML::EventHandler {
  public:
    explicit YamlTreeBuilder(std::shared_ptr<const std::string> name) : name_(std::move(name)) {}

    void OnDocumentStart(const YAML::Mark& mark) override {
        if (documents_++ > 0) throw error_at(place(mark), "", "a second document is not allowed (one document a file)");
    }
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        add(node(mark, anchor, "?", YamlNode::Kind::kEmpty));
    }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse_anchor(mark); }
    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string& value) override {
        YamlNode scalar = node(mark, anchor, tag, YamlNode::Kind::kScalar);
        scalar.text = value;
        add(std::move(scalar));
    }
    void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value) override {
        open_.push_back({node(mark, anchor, tag, YamlNode::Kind::kList), false});
        check_depth();
    }
    void OnSequenceEnd() override { close(); }
    void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value) override {
        open_.push_back({node(mark, anchor, tag, YamlNode::Kind::kMap), true});
        check_depth();
    }
    void OnMapEnd() override { close(); }

    bool empty() const { return root_.kind == YamlNode::Kind::kEmpty; }
    YamlNode take() { return std::move(root_); }
    YamlPlace place(const YAML::Mark& mark) const { return {name_, mark.line + 1, mark.column + 1}; }

  private:
    struct Open {
        YamlNode node;
        bool wants_key;
    };

    [[noreturn]] void refuse_anchor(const YAML::Mark& mark) const {
        throw error_at(
            place(mark), "",
            "anchors and aliases are not allowed (write the value out, or name a catalogue entry with `base`)");
    }

    YamlNode node(const YAML::Mark& mark, YAML::anchor_t anchor, const std::string& tag, YamlNode::Kind kind) {
        if (anchor != YAML::NullAnchor) refuse_anchor(mark);
        if (!tag.empty() && tag != "?" && tag != "!")
            throw error_at(place(mark), "", "tag " + tag + " is not allowed (plain values only)");
        if (++nodes_ > kMostYamlNodes)
            throw error_at(place(mark), "", "the file is too large (at most 3 million values)");
        YamlNode made;
        made.kind = kind;
        made.place = place(mark);
        return made;
    }

    void check_depth() const {
        if (open_.size() > kDeepestYaml)
            throw error_at(open_.back().node.place, "", "nested too deeply (at most 40 levels)");
    }

    void close() {
        YamlNode done = std::move(open_.back().node);
        open_.pop_back();
        add(std::move(done));
    }

    void add(YamlNode value) {
        if (open_.empty()) {
            root_ = std::move(value);
            return;
        }
        Open& parent = open_.back();
        if (parent.node.is_list()) {
            parent.node.items.push_back(std::move(value));
        } else if (parent.wants_key) {
            if (!value.is_scalar()) throw error_at(value.place, "", "a key must be a word, not " + value.shown());
            if (value.text.size() > 200)
                throw error_at(value.place, "",
                               "a key of " + std::to_string(value.text.size()) + " characters is not allowed");
            for (const auto& [key, first] : parent.node.keys) {
                if (key == value.text) {
                    throw error_at(
                        value.place, "",
                        "key '" + key + "' is given twice (first in line " + std::to_string(first.line) + ")");
                }
            }
            if (parent.node.keys.size() >= 1000) throw error_at(value.place, "", "more than 1000 keys in one map");
            parent.node.keys.emplace_back(std::move(value.text), value.place);
            parent.wants_key = false;
        } else {
            // yaml-cpp places a missing value at whatever comes next; its key is what a person looks for.
            if (value.kind == YamlNode::Kind::kEmpty) value.place = parent.node.keys.back().second;
            parent.node.items.push_back(std::move(value));
            parent.wants_key = true;
        }
    }

    std::shared_ptr<const std::string> name_;
    std::vector<Open> open_;
    YamlNode root_;
    std::size_t nodes_ = 0;
    int documents_ = 0;
};

}  // namespace

std::string YamlPlace::text() const {
    if (!name) return "";
    if (line == 0) return *name;
    return *name + ":" + std::to_string(line) + ":" + std::to_string(column);
}

YamlNode* YamlNode::find(const std::string& key) {
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (keys[i].first == key) return &items[i];
    }
    return nullptr;
}

const YamlNode* YamlNode::find(const std::string& key) const {
    return const_cast<YamlNode*>(this)->find(key);
}

void YamlNode::set(const std::string& key, YamlNode value) {
    if (YamlNode* there = find(key)) {
        *there = std::move(value);
        return;
    }
    keys.emplace_back(key, value.place);
    items.push_back(std::move(value));
}

void YamlNode::erase(const std::string& key) {
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (keys[i].first != key) continue;
        keys.erase(keys.begin() + static_cast<std::ptrdiff_t>(i));
        items.erase(items.begin() + static_cast<std::ptrdiff_t>(i));
        return;
    }
}

std::string YamlNode::shown() const {
    switch (kind) {
        case Kind::kEmpty:
            return "nothing";
        case Kind::kList:
            return "a list";
        case Kind::kMap:
            return "a map";
        case Kind::kScalar:
            break;
    }
    std::string line = text.size() > 60 ? text.substr(0, 57) + "..." : text;
    std::replace_if(
        line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
    return line.empty() ? "''" : line;
}

YamlNode parse_yaml(const std::string& text, const std::string& name) {
    const auto shared_name = std::make_shared<const std::string>(name);
    if (text.size() > kLargestYamlText)
        throw error_at({shared_name, 1, 1}, "", "the file is too large (at most 32 MiB)");
    if (const std::size_t zero = text.find('\0'); zero != std::string::npos) {
        const int line =
            1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(zero), '\n'));
        throw error_at({shared_name, line, 1}, "", "a zero byte is not allowed (this is not a text file)");
    }
    YamlTreeBuilder builder(shared_name);
    try {
        std::istringstream stream(text);
        YAML::Parser parser(stream);
        while (parser.HandleNextDocument(builder)) {
        }
    } catch (const YAML::Exception& exception) {
        throw error_at(builder.place(exception.mark), "", "not valid YAML: " + exception.msg);
    }
    if (builder.empty()) throw error_at({shared_name, 1, 1}, "", "the file is empty");
    return builder.take();
}

ConfigError error_at(const YamlPlace& place, const std::string& path, const std::string& message) {
    std::string text = place.text();
    if (!text.empty()) text += ": ";
    if (!path.empty()) text += path + ": ";
    return ConfigError(text + message);
}

}  // namespace headway::scenarios
