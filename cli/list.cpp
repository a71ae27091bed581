#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "cli/catalogue_choice.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/standard_output.h"
#include "policies/policy.h"
#include "scenarios/language/config_error.h"
#include "scenarios/language/nearest_name.h"
#include "scenarios/record/listing_json.h"

namespace headway::cli {

namespace {

using scenarios::Catalogue;
using scenarios::ListedEntry;
using scenarios::ListedFact;

/// Four significant digits are what people compare; the catalogue file has them all.
double rounded(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", value);
    return std::atof(text);
}

double gbyte_per_s(scenarios::BytesPerSecond rate) {
    return rounded(rate.value * 1e-9);
}

std::vector<ListedFact> gpu_facts(const Catalogue& catalogue, const std::string& name) {
    const scenarios::GpuType gpu = scenarios::read_gpu(catalogue, name);
    return {{"memory_gib", rounded(gpu.memory.in_gib())},        {"half_tflops", rounded(gpu.peak_half.value * 1e-12)},
            {"fp8_tflops", rounded(gpu.peak_fp8.value * 1e-12)}, {"memory_gb_per_s", gbyte_per_s(gpu.memory_bandwidth)},
            {"sms", static_cast<double>(gpu.sm_count)},          {"boost_mhz", rounded(gpu.boost_clock.value)},
            {"power_w", rounded(gpu.power_limit.value)},         {"slowdown_c", rounded(gpu.thermal.slowdown.value)}};
}

std::vector<ListedFact> fabric_facts(const Catalogue& catalogue, const std::string& name) {
    const scenarios::Fabric fabric = scenarios::read_fabric(catalogue, name);
    return {{"gb_per_s", gbyte_per_s(fabric.bandwidth)}, {"efficiency", rounded(fabric.efficiency)}};
}

std::vector<ListedFact> stack_facts(const Catalogue& catalogue, const std::string& name) {
    const scenarios::SoftwareStack stack = scenarios::read_stack(catalogue, name);
    return {{"flash_attention", stack.flash_attention}};
}

std::vector<ListedFact> cluster_facts(const Catalogue& catalogue, const std::string& name) {
    const scenarios::Cluster cluster = scenarios::read_cluster(catalogue, name);
    const scenarios::Node& node = cluster.node_groups.front().node;
    std::string gpus;
    for (const scenarios::NodeGroup& group : cluster.node_groups) {
        if (gpus.find(group.node.gpu.name) != std::string::npos) continue;
        gpus += (gpus.empty() ? "" : " + ") + group.node.gpu.name;
    }
    return {{"nodes", static_cast<double>(cluster.nodes())},
            {"gpus", static_cast<double>(cluster.gpus())},
            {"gpu", gpus},
            {"fabric", node.fabric.name},
            {"nics", static_cast<double>(node.nics)},
            {"network", node.network.name}};
}

std::vector<ListedFact> model_facts(const Catalogue& catalogue, const std::string& name) {
    const scenarios::Model model = scenarios::read_model(catalogue, name);
    return {{"layers", static_cast<double>(model.layers)}, {"hidden", static_cast<double>(model.hidden)},
            {"heads", static_cast<double>(model.heads)},   {"kv_heads", static_cast<double>(model.kv_heads)},
            {"ffn", static_cast<double>(model.ffn)},       {"gated_mlp", model.gated_mlp},
            {"vocab", static_cast<double>(model.vocab)},   {"sequence", static_cast<double>(model.sequence_length)}};
}

struct Kind {
    std::string name;
    std::function<std::vector<ListedFact>(const Catalogue&, const std::string&)> facts;
};

const std::vector<Kind>& catalogue_kinds() {
    static const std::vector<Kind> kKinds = {{"gpus", gpu_facts},
                                             {"fabrics", fabric_facts},
                                             {"stacks", stack_facts},
                                             {"clusters", cluster_facts},
                                             {"models", model_facts}};
    return kKinds;
}

std::string joined(const std::vector<std::string>& texts) {
    std::string all;
    for (const std::string& text : texts) all += (all.empty() ? "" : "; ") + text;
    return all;
}

std::vector<ListedEntry> listed_policies() {
    std::vector<ListedEntry> entries;
    for (const policies::PolicyEntry& policy : policies::registered_policies()) {
        entries.push_back({policy.name, {{"description", policy.description}}});
    }
    return entries;
}

std::vector<ListedEntry> listed_entries(const ListArguments& arguments) {
    if (arguments.kind == "policies") return listed_policies();
    const auto& kinds = catalogue_kinds();
    const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& k) { return k.name == arguments.kind; });
    if (kind == kinds.end()) {
        std::vector<std::string> known = {"policies"};
        for (const Kind& k : kinds) known.push_back(k.name);
        throw scenarios::ConfigError("list: '" + arguments.kind +
                                     "' is not allowed (one of gpus, fabrics, stacks, clusters, models, policies)" +
                                     scenarios::did_you_mean(arguments.kind, known));
    }
    const Catalogue catalogue = chosen_catalogue(arguments);
    std::vector<ListedEntry> entries;
    for (const std::string& name : scenarios::catalogue_names(catalogue, kind->name)) {
        entries.push_back({name, kind->facts(catalogue, name)});
        entries.back().facts.emplace_back("description", scenarios::catalogue_description(catalogue, kind->name, name));
        entries.back().facts.emplace_back("source", joined(scenarios::catalogue_sources(catalogue, kind->name, name)));
    }
    return entries;
}

std::string cell_text(const ListedFact& fact) {
    if (const auto* number = std::get_if<double>(&fact.second)) {
        char text[32];
        std::snprintf(text, sizeof text, "%.10g", *number);
        return *number == 0 ? "-" : text;
    }
    if (const auto* flag = std::get_if<bool>(&fact.second)) return *flag ? "yes" : "no";
    return std::get<std::string>(fact.second);
}

/// Numbers to the right, words to the left, the last column as long as it is; what the numbers come from below, since
/// it takes a line.
std::string table_text(std::vector<ListedEntry> entries) {
    if (entries.empty()) return "none\n";
    std::string sources;
    for (ListedEntry& entry : entries) {
        if (entry.facts.empty() || entry.facts.back().first != "source") continue;
        const std::string source = cell_text(entry.facts.back());
        sources += "  " + entry.name + ": " + (source.empty() ? "assumed" : source) + "\n";
        entry.facts.pop_back();
    }
    std::vector<std::vector<std::string>> rows(1, {"name"});
    std::vector<bool> right = {false};
    for (const ListedFact& fact : entries.front().facts) {
        std::string heading = fact.first;
        std::replace(heading.begin(), heading.end(), '_', ' ');
        rows[0].push_back(heading);
        right.push_back(std::holds_alternative<double>(fact.second));
    }
    for (const ListedEntry& entry : entries) {
        rows.push_back({entry.name});
        for (const ListedFact& fact : entry.facts) rows.back().push_back(cell_text(fact));
    }
    std::vector<std::size_t> widths(rows[0].size(), 0);
    for (const auto& row : rows) {
        for (std::size_t column = 0; column < row.size(); ++column) {
            widths[column] = std::max(widths[column], row[column].size());
        }
    }
    std::string text;
    for (const auto& row : rows) {
        std::string line;
        for (std::size_t column = 0; column < row.size(); ++column) {
            const std::string blanks(widths[column] - row[column].size(), ' ');
            line += (column == 0 ? "" : "  ") + (right[column] ? blanks + row[column] : row[column] + blanks);
        }
        text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return sources.empty() ? text : text + "\nSources:\n" + sources;
}

}  // namespace

int list(const ListArguments& arguments) {
    const std::vector<ListedEntry> entries = listed_entries(arguments);
    print(arguments.json ? scenarios::listing_json(arguments.kind, entries) : table_text(entries));
    return kSucceeded;
}

}  // namespace headway::cli
