#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/language/scenario.h"

/// YAML in and out. The struct is the schema: one field list a struct reads, checks and writes it.
namespace headway::scenarios {

/// Where catalogue entries are looked up: DIR/gpus/NAME.yaml, DIR/fabrics, DIR/stacks, DIR/clusters, DIR/models.
struct Catalogue {
  std::filesystem::path directory;
};

/// One `--set key.path=value` of the command line.
using Override = std::pair<std::string, std::string>;

/// Reads, resolves and checks a scenario. Throws ConfigError; files named in it are relative to the scenario's folder.
Scenario read_scenario(const std::filesystem::path& file, const Catalogue& catalogue, const std::vector<Override>& overrides = {});
/// The same from text; `name` stands for the file in messages.
Scenario parse_scenario(const std::string& text, const std::string& name, const std::filesystem::path& folder,
                        const Catalogue& catalogue, const std::vector<Override>& overrides = {});

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

}  // namespace headway::scenarios
