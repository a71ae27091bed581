#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "scenarios/language/read.h"
#include "scenarios/language/yaml_tree.h"

/// What the reading of one scenario carries along: the catalogue, the overrides still to be applied, and the places of
/// keys.
namespace headway::scenarios {

/// One `--set`, until it has found its place. An override may only find it once a catalogue entry has been put in.
struct PendingOverride {
    std::vector<std::string> keys;
    YamlNode value;
    bool applied = false;
};

struct ReadContext {
    Catalogue catalogue;
    std::filesystem::path folder;
    std::vector<PendingOverride> overrides;
    KeyPlaces places;
};

/// Parses the values of `--set` options. Throws ConfigError naming the option.
std::vector<PendingOverride> parse_overrides(const std::vector<Override>& overrides);

/// Applies every pending override that lies below `path` and can be reached in `node`.
void apply_overrides(ReadContext& context, YamlNode& node, const std::string& path);

/// Throws ConfigError for the first override that never found its place.
void check_all_applied(const ReadContext& context);

/// Replaces a name, or a map with `base: NAME`, by the whole map of the catalogue entry with its overrides; adds the
/// entry's name as `name` where the map has none. A map without `base` stays as it is.
void resolve_entry(const Catalogue& catalogue, YamlNode& node, const std::string& kind, const std::string& path);

/// The entry's whole map; `asked` is where its name stood.
YamlNode load_entry(const Catalogue& catalogue, const std::string& kind, const std::string& name,
                    const YamlPlace& asked, const std::string& path);

/// Text of a file of at most 64 MiB. Throws ConfigError that begins with `where`.
std::string read_text_file(const std::filesystem::path& file, const std::string& where);

inline std::string join_path(const std::string& path, const std::string& key) {
    return path.empty() ? key : path + "." + key;
}

}  // namespace headway::scenarios
