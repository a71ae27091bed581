#include "scenarios/validation/hardware_names.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "scenarios/language/nearest_name.h"
#include "scenarios/validation/table_node.h"

namespace headway::scenarios {

namespace {

/// "A100-SXM4-80GB" and "a100 sxm4 80gb" are one name.
std::string plain_name(const std::string& name) {
    std::string plain;
    for (const char letter : name) {
        if (std::isalnum(static_cast<unsigned char>(letter))) {
            plain += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
        }
    }
    return plain;
}

void note_once(std::vector<std::string>& notes, const std::string& note) {
    if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
}

/// "nemo v25" begins "nemo v25.02.02" and not "nemo v250".
bool begins_software(const std::string& software, const std::string& beginning) {
    if (software.size() < beginning.size()) return false;
    for (std::size_t i = 0; i < beginning.size(); ++i) {
        if (std::tolower(static_cast<unsigned char>(software[i])) !=
            std::tolower(static_cast<unsigned char>(beginning[i]))) {
            return false;
        }
    }
    return software.size() == beginning.size() || !std::isalnum(static_cast<unsigned char>(software[beginning.size()]));
}

}  // namespace

HardwareNames::HardwareNames(const Catalogue& catalogue) : catalogue_(catalogue) {
    const std::filesystem::path file = catalogue.directory / "aliases" / "measured-tables.yaml";
    std::ifstream stream(file, std::ios::binary);
    if (!stream) {
        throw ConfigError(file.string() +
                          ": cannot be read (it says which catalogue entries the "
                          "names of tables mean)");
    }
    std::ostringstream text;
    text << stream.rdbuf();
    const TableNode root = TableNode::parse(text.str(), file.string());
    root.expect_keys({"gpus", "networks", "networks_by_rate", "node_fabrics", "software"});
    const auto read_names = [&](const char* key, Names& names) {
        if (!root.has(key)) return;
        for (const auto& [name, value] : root.at(key).entries()) names[plain_name(name)] = value.text();
    };
    read_names("gpus", gpu_names_);
    read_names("networks", network_names_);
    for (const auto& [name, value] : root.at("node_fabrics").entries()) node_fabrics_[name] = value.text();
    for (const TableNode& item : root.at("networks_by_rate").items()) {
        item.expect_keys({"nic_gbit_per_s", "network"});
        networks_by_rate_.emplace_back(item.at("nic_gbit_per_s").positive(), item.at("network").text());
    }
    for (const auto& [name, value] : root.at("software").entries()) software_.emplace_back(name, value.text());
}

std::string HardwareNames::entry(const std::string& kind, const Names& names, const std::string& name) const {
    const auto known = names.find(plain_name(name));
    if (known != names.end()) return known->second;
    const std::vector<std::string> entries = catalogue_names(catalogue_, kind);
    for (const std::string& candidate : entries) {
        if (plain_name(candidate) == plain_name(name)) return candidate;
    }
    throw std::invalid_argument("'" + name + "' is neither an entry of " + kind +
                                "/ nor in aliases/measured-tables.yaml" + did_you_mean(name, entries));
}

GpuType& HardwareNames::gpu(const std::string& entry_name) {
    const auto found = gpus_.find(entry_name);
    if (found != gpus_.end()) return found->second;
    return gpus_.emplace(entry_name, read_gpu(catalogue_, entry_name)).first->second;
}

Fabric& HardwareNames::fabric(const std::string& entry_name) {
    const auto found = fabrics_.find(entry_name);
    if (found != fabrics_.end()) return found->second;
    return fabrics_.emplace(entry_name, read_fabric(catalogue_, entry_name)).first->second;
}

Node HardwareNames::node(const MeasuredCluster& cluster, std::vector<std::string>& notes) {
    Node node;
    const std::string gpu_entry = entry("gpus", gpu_names_, cluster.gpu);
    node.gpu = gpu(gpu_entry);
    node.gpus = cluster.gpus_per_node;
    node.nics = cluster.nics_per_node;
    if (!cluster.node_fabric.empty()) {
        node.fabric = fabric(entry("fabrics", {}, cluster.node_fabric));
    } else {
        const auto usual = node_fabrics_.find(gpu_entry);
        if (usual == node_fabrics_.end()) {
            throw std::invalid_argument("aliases/measured-tables.yaml names no node fabric for '" + gpu_entry +
                                        "' (state cluster.node_fabric in the table)");
        }
        node.fabric = fabric(usual->second);
    }
    if (plain_name(cluster.network) == "unknown") {
        const auto usual = std::find_if(networks_by_rate_.begin(), networks_by_rate_.end(),
                                        [&](const auto& rate) { return rate.first == cluster.nic_gbit_per_s; });
        if (usual == networks_by_rate_.end()) {
            throw std::invalid_argument(
                "the network is not stated, and aliases/measured-tables.yaml names none for "
                "NICs of this rate");
        }
        note_once(notes, "network not stated: " + usual->second);
        node.network = fabric(usual->second);
    } else {
        node.network = fabric(entry("fabrics", network_names_, cluster.network));
    }
    node.network.bandwidth = {cluster.nic_gbit_per_s * 1e9 / 8.0};
    return node;
}

SoftwareStack HardwareNames::stack(const std::string& software, const std::optional<std::string>& chosen,
                                   std::vector<std::string>& notes) {
    std::string found;
    if (chosen) {
        found = *chosen;
        note_once(notes, "stack " + found + " for all rows (--stack)");
    } else {
        std::size_t longest = 0;
        for (const auto& [beginning, stack_entry] : software_) {
            const bool fits = software.empty() ? beginning == "not stated" : begins_software(software, beginning);
            if (fits && beginning.size() > longest) {
                longest = beginning.size();
                found = stack_entry;
            }
        }
        if (found.empty()) {
            std::vector<std::string> known;
            for (const auto& [beginning, stack_entry] : software_) known.push_back(beginning);
            throw std::invalid_argument("software '" + software + "' is not in aliases/measured-tables.yaml" +
                                        did_you_mean(software, known) + "; choose a stack with --stack NAME");
        }
        note_once(notes, "software " + (software.empty() ? "not stated" : "'" + software + "'") + ": stack " + found);
    }
    const auto cached = stacks_.find(found);
    if (cached != stacks_.end()) return cached->second;
    return stacks_.emplace(found, read_stack(catalogue_, found)).first->second;
}

}  // namespace headway::scenarios
