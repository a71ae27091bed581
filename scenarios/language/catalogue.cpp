#include <algorithm>
#include <cstdint>
#include <fstream>
#include <set>
#include <sstream>

#include "scenarios/language/nearest_name.h"
#include "scenarios/language/read_context.h"

namespace headway::scenarios {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kLargestTextFile = 64u << 20;
constexpr int kLongestBaseChain = 8;

bool is_entry_name(const std::string& name) {
    if (name.empty() || name.size() > 100 || name.front() == '.') return false;
    return std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
               c == '.' || c == '+';
    });
}

/// The notes of a catalogue file about itself, taken out of its tree.
struct EntryNotes {
    bool one_source = false;        ///< `source:` covers every number
    std::set<std::string> sources;  ///< names defined under `sources:`
};

EntryNotes take_entry_notes(YamlNode& root) {
    EntryNotes notes;
    if (const YamlNode* source = root.find("source")) {
        if (!source->is_scalar() || source->text.empty())
            throw error_at(source->place, "source", "a text is needed, not " + source->shown());
        notes.one_source = true;
        root.erase("source");
    }
    if (const YamlNode* sources = root.find("sources")) {
        if (!sources->is_map())
            throw error_at(sources->place, "sources", "a map from short names to sources is needed");
        for (std::size_t i = 0; i < sources->keys.size(); ++i) {
            if (!sources->items[i].is_scalar() || sources->items[i].text.empty()) {
                throw error_at(sources->keys[i].second, "sources." + sources->keys[i].first, "a text is needed");
            }
            notes.sources.insert(sources->keys[i].first);
        }
        root.erase("sources");
    }
    if (const YamlNode* description = root.find("description")) {
        if (!description->is_scalar()) throw error_at(description->place, "description", "a text is needed");
        root.erase("description");
    }
    notes.sources.insert("assumed");
    return notes;
}

/// A value that counts or measures something, and so needs a source: it begins like a number.
bool needs_source(const YamlNode& node) {
    if (!node.is_scalar() || node.text.empty()) return false;
    const char first = node.text.front();
    if (first >= '0' && first <= '9') return true;
    return (first == '-' || first == '+' || first == '.') && node.text.size() > 1 && node.text[1] >= '0' &&
           node.text[1] <= '9';
}

/// Unwraps `[VALUE, SOURCE]` everywhere and demands a source for every number.
void take_sources(YamlNode& node, const EntryNotes& notes, const std::string& path, bool has_source) {
    if (node.is_list() && node.items.size() == 2 && node.items[1].is_scalar() && !has_source) {
        const std::string source = node.items[1].text;
        if (notes.sources.count(source)) {
            YamlNode value = std::move(node.items[0]);
            node = std::move(value);
            has_source = true;
        } else if (needs_source(node.items[0]) && !needs_source(node.items[1])) {
            const std::vector<std::string> known(notes.sources.begin(), notes.sources.end());
            throw error_at(node.items[1].place, path,
                           "source '" + source + "' is not defined under sources" + suggestion(source, known));
        }
    }
    if (needs_source(node) && !has_source && !notes.one_source) {
        throw error_at(node.place, path,
                       node.shown() + " has no source (write [" + node.shown() +
                           ", SOURCE] with a name defined under "
                           "`sources`, or [" +
                           node.shown() + ", assumed])");
    }
    for (std::size_t i = 0; i < node.items.size(); ++i) {
        take_sources(node.items[i], notes, join_path(path, node.is_map() ? node.keys[i].first : std::to_string(i)),
                     has_source);
    }
}

/// Lays `over` onto `node`: maps key by key, everything else replaces. A map on a name makes the name the map's base.
void merge_over(YamlNode& node, const YamlNode& over) {
    if (!over.is_map() || over.find("base")) {
        node = over;
        return;
    }
    if (node.is_scalar()) {
        YamlNode base = std::move(node);
        node = YamlNode{};
        node.kind = YamlNode::Kind::kMap;
        node.set("base", std::move(base));
    } else if (!node.is_map()) {
        node = over;
        return;
    }
    node.place = over.place;
    for (std::size_t i = 0; i < over.keys.size(); ++i) {
        if (YamlNode* there = node.find(over.keys[i].first))
            merge_over(*there, over.items[i]);
        else
            node.set(over.keys[i].first, over.items[i]);
        for (auto& key : node.keys) {
            if (key.first == over.keys[i].first) key.second = over.keys[i].second;
        }
    }
}

YamlNode load_entry_chain(const Catalogue& catalogue, const std::string& kind, const std::string& name,
                          const YamlPlace& asked, const std::string& path, int depth) {
    const std::string what = "'" + YamlNode{YamlNode::Kind::kScalar, {}, name, {}, {}}.shown() + "'";
    const fs::path file = catalogue.directory / kind / (name + ".yaml");
    std::error_code ignored;
    if (!is_entry_name(name) || !fs::is_regular_file(file, ignored)) {
        throw error_at(
            asked, path,
            what + " is not in the catalogue of " + kind + suggestion(name, catalogue_names(catalogue, kind)));
    }
    if (depth > kLongestBaseChain)
        throw error_at(asked, path, what + " is based on itself, or on too long a chain of entries");
    YamlNode root = parse_yaml(read_text_file(file, asked.text()), file.string());
    if (!root.is_map()) throw error_at(root.place, "", "a catalogue entry must be a map, not " + root.shown());
    if (const YamlNode* own = root.find("name"))
        throw error_at(own->place, "name", "not allowed here (the file's name is the entry's name)");
    const EntryNotes notes = take_entry_notes(root);
    take_sources(root, notes, "", false);
    if (const YamlNode* base = root.find("base")) {
        if (!base->is_scalar()) throw error_at(base->place, "base", "a name is needed, not " + base->shown());
        YamlNode whole = load_entry_chain(catalogue, kind, base->text, base->place, "base", depth + 1);
        root.erase("base");
        merge_over(whole, root);
        return whole;
    }
    return root;
}

}  // namespace

std::string read_text_file(const fs::path& file, const std::string& where) {
    const std::string prefix = where.empty() ? file.string() : where + ": " + file.string();
    std::error_code error;
    const fs::file_status status = fs::status(file, error);
    if (!fs::exists(status)) throw ConfigError(prefix + ": no such file");
    if (fs::is_directory(status)) throw ConfigError(prefix + ": this is a folder, not a file");
    std::ifstream stream(file, std::ios::binary);
    if (!stream) throw ConfigError(prefix + ": cannot be opened");
    std::string text;
    std::array<char, 65536> buffer{};
    while (stream.read(buffer.data(), buffer.size()), stream.gcount() > 0) {
        text.append(buffer.data(), static_cast<std::size_t>(stream.gcount()));
        if (text.size() > kLargestTextFile) throw ConfigError(prefix + ": too large (at most 64 MiB)");
    }
    if (stream.bad()) throw ConfigError(prefix + ": cannot be read");
    return text;
}

YamlNode load_entry(const Catalogue& catalogue, const std::string& kind, const std::string& name,
                    const YamlPlace& asked, const std::string& path) {
    return load_entry_chain(catalogue, kind, name, asked, path, 0);
}

void resolve_entry(const Catalogue& catalogue, YamlNode& node, const std::string& kind, const std::string& path) {
    YamlNode base;
    if (node.is_scalar())
        base = node;
    else if (const YamlNode* named = node.is_map() ? node.find("base") : nullptr)
        base = *named;
    else
        return;
    const std::string base_path = node.is_scalar() ? path : join_path(path, "base");
    if (!base.is_scalar())
        throw error_at(base.place, base_path, "the name of a catalogue entry is needed, not " + base.shown());
    YamlNode whole = load_entry(catalogue, kind, base.text, base.place, base_path);
    const YamlPlace entry_place = whole.place;  // a key that is missing is missing there
    if (node.is_map()) {
        node.erase("base");
        merge_over(whole, node);
    }
    if (!whole.find("name")) whole.set("name", base);
    whole.place = entry_place;
    node = std::move(whole);
}

std::vector<std::string> catalogue_names(const Catalogue& catalogue, const std::string& kind) {
    std::vector<std::string> names;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(catalogue.directory / kind, ignored)) {
        if (entry.path().extension() == ".yaml" && is_entry_name(entry.path().stem().string()))
            names.push_back(entry.path().stem().string());
    }
    std::sort(names.begin(), names.end());
    return names;
}

std::string catalogue_description(const Catalogue& catalogue, const std::string& kind, const std::string& name) {
    if (!is_entry_name(name)) throw ConfigError("'" + name + "' is not in the catalogue of " + kind);
    const fs::path file = catalogue.directory / kind / (name + ".yaml");
    const YamlNode root = parse_yaml(read_text_file(file, ""), file.string());
    const YamlNode* description = root.is_map() ? root.find("description") : nullptr;
    return description && description->is_scalar() ? description->text : "";
}

std::vector<std::string> catalogue_sources(const Catalogue& catalogue, const std::string& kind,
                                           const std::string& name) {
    if (!is_entry_name(name)) throw ConfigError("'" + name + "' is not in the catalogue of " + kind);
    const fs::path file = catalogue.directory / kind / (name + ".yaml");
    const YamlNode root = parse_yaml(read_text_file(file, ""), file.string());
    std::vector<std::string> sources;
    if (!root.is_map()) return sources;
    if (const YamlNode* source = root.find("source"); source && source->is_scalar()) sources.push_back(source->text);
    if (const YamlNode* named = root.find("sources"); named && named->is_map()) {
        for (const YamlNode& source : named->items) {
            if (source.is_scalar()) sources.push_back(source.text);
        }
    }
    const YamlNode* base = root.find("base");
    if (base == nullptr || !base->is_scalar() || base->text == name) return sources;
    for (const std::string& source : catalogue_sources(catalogue, kind, base->text)) {
        if (std::find(sources.begin(), sources.end(), source) == sources.end()) sources.push_back(source);
    }
    return sources;
}

}  // namespace headway::scenarios
