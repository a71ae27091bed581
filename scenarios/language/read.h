#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/language/config_error.h"
#include "scenarios/language/scenario.h"

/// YAML in and out. The struct is the schema: one field list a struct (`fields.h`) reads, checks and writes it.
namespace headway::scenarios {

/// Where catalogue entries are looked up: DIR/gpus/NAME.yaml, DIR/fabrics, DIR/stacks, DIR/clusters, DIR/models.
struct Catalogue {
    std::filesystem::path directory;
};

/// One `--set key.path=value` of the command line. List items are numbered from 0: `disturbances.0.start=5 min`.
using Override = std::pair<std::string, std::string>;

/// Where every key of a scenario was written, for errors that are found after reading.
class KeyPlaces {
  public:
    /// `place` is "FILE:LINE:COLUMN" or "--set KEY=VALUE".
    void add(const std::string& key, const std::string& place) { places_[key] = place; }
    /// Place of the key, or of the nearest section around it that was written; "" where nothing was.
    std::string at(const std::string& key) const;
    /// Whether this very key was written.
    bool knows(const std::string& key) const { return places_.count(key) > 0; }
    /// "straggler.yaml:14:9: job.micro_batch: MESSAGE".
    ConfigError error(const std::string& key, const std::string& message) const;

  private:
    std::map<std::string, std::string> places_;
};

/// Reads, resolves and checks a scenario. Throws ConfigError; files named in it are relative to the scenario's folder.
/// `places` (may be null) receives where each key stood.
Scenario read_scenario(const std::filesystem::path& file, const Catalogue& catalogue,
                       const std::vector<Override>& overrides = {}, KeyPlaces* places = nullptr);
/// The same from text; `name` stands for the file in messages.
Scenario parse_scenario(const std::string& text, const std::string& name, const std::filesystem::path& folder,
                        const Catalogue& catalogue, const std::vector<Override>& overrides = {},
                        KeyPlaces* places = nullptr);

/// The resolved scenario with every default written out; parsing it gives the same scenario.
std::string write_scenario(const Scenario& scenario);

/// Catalogue entries by name. Throw ConfigError naming the nearest known entry.
GpuType read_gpu(const Catalogue& catalogue, const std::string& name);
Fabric read_fabric(const Catalogue& catalogue, const std::string& name);
SoftwareStack read_stack(const Catalogue& catalogue, const std::string& name);
Cluster read_cluster(const Catalogue& catalogue, const std::string& name);
Model read_model(const Catalogue& catalogue, const std::string& name);
/// Names of all entries of a kind ("gpus", "fabrics", "stacks", "clusters", "models"), sorted.
std::vector<std::string> catalogue_names(const Catalogue& catalogue, const std::string& kind);
/// The entry's own one-line description; "" where it has none.
std::string catalogue_description(const Catalogue& catalogue, const std::string& kind, const std::string& name);
/// What the entry's own numbers, and those of its base, come from, as its file words it.
std::vector<std::string> catalogue_sources(const Catalogue& catalogue, const std::string& kind,
                                           const std::string& name);

}  // namespace headway::scenarios
