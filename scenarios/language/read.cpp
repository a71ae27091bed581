#include "scenarios/language/read.h"

#include <stdexcept>

#include "scenarios/language/checks.h"
#include "scenarios/language/field_reader.h"
#include "scenarios/language/generator.h"

namespace headway::scenarios {
namespace {

/// A visitor of the rates' field list: every family's ranges run from small to large.
struct RateRangeCheck {
    const KeyPlaces& places;
    void field(const char*, std::optional<Duration>&, const Bounds&) {}
    void field(const char* family, FamilyRate& rate) {
        const std::string path = std::string("generate.") + family;
        if (rate.severity_min > rate.severity_max)
            throw places.error(path + ".severity_min", format_value(rate.severity_min) +
                                                           " is not allowed (at most severity_max, " +
                                                           format_value(rate.severity_max) + ")");
        if (rate.shortest > rate.longest)
            throw places.error(path + ".shortest", format_value(rate.shortest) + " is not allowed (at most longest, " +
                                                       format_value(rate.longest) + ")");
    }
};

/// Draws the disturbances that `generate` asks for and adds them after those of the scenario itself.
void draw_generated(Scenario& scenario, const KeyPlaces& places) {
    if (!scenario.generate) return;
    const DisturbanceRates rates = *scenario.generate;
    if (!rates.horizon && !scenario.run.time)
        throw places.error("generate", "'horizon' is missing (until when to draw, since the run has no time)");
    Duration end = rates.horizon.value_or(scenario.run.time.value_or(Duration{}));
    if (scenario.run.time) end = std::min(end, *scenario.run.time);
    RateRangeCheck ranges{places};
    DisturbanceRates checked = rates;
    fields(ranges, checked);
    std::vector<Disturbance> drawn;
    try {
        drawn = generate_disturbances(rates, scenario, end);
    } catch (const std::invalid_argument& error) {
        throw places.error("generate", error.what());
    }
    scenario.disturbances.insert(scenario.disturbances.end(), drawn.begin(), drawn.end());
    scenario.generate.reset();
    check_disturbances(scenario, places);
}

template <class T>
T read_entry(const Catalogue& catalogue, const std::string& kind, const std::string& name, KeyPlaces& places) {
    ReadContext context{catalogue, {}, {}, {}};
    YamlNode node;
    node.kind = YamlNode::Kind::kScalar;
    node.text = name;
    resolve_entry(catalogue, node, kind, "");
    T entry;
    read_value(context, node, kind, entry, {});
    places = context.places;
    return entry;
}

}  // namespace

std::string KeyPlaces::at(const std::string& key) const {
    for (std::string path = key;;) {
        if (const auto found = places_.find(path); found != places_.end()) return found->second;
        if (path.empty()) return "";
        const std::size_t dot = path.rfind('.');
        path.erase(dot == std::string::npos ? 0 : dot);
    }
}

ConfigError KeyPlaces::error(const std::string& key, const std::string& message) const {
    const std::string place = at(key);
    return ConfigError((place.empty() ? "" : place + ": ") + key + ": " + message);
}

Scenario read_scenario(const std::filesystem::path& file, const Catalogue& catalogue,
                       const std::vector<Override>& overrides, KeyPlaces* places) {
    return parse_scenario(read_text_file(file, ""), file.string(), file.parent_path(), catalogue, overrides, places);
}

Scenario parse_scenario(const std::string& text, const std::string& name, const std::filesystem::path& folder,
                        const Catalogue& catalogue, const std::vector<Override>& overrides, KeyPlaces* places) {
    ReadContext context{catalogue, folder, parse_overrides(overrides), {}};
    YamlNode root = parse_yaml(text, name);
    if (!root.is_map()) throw error_at(root.place, "", "a scenario must be a map of keys, not " + root.shown());
    if (root.find("families") != nullptr && root.find("job") == nullptr)
        throw error_at(root.place, "", "a set of scenarios (it has families), where one scenario is wanted");
    apply_overrides(context, root, "");
    Scenario scenario;
    read_value(context, root, "", scenario, {});
    check_all_applied(context);
    if (scenario.name.empty()) scenario.name = std::filesystem::path(name).stem().string();
    complete_and_check(scenario, context.places);
    if (scenario.job.measured)
        scenario.job.measured->plan = initial_plan(scenario.strategy, scenario.job, scenario.cluster);
    draw_generated(scenario, context.places);
    if (places) *places = std::move(context.places);
    return scenario;
}

GpuType read_gpu(const Catalogue& catalogue, const std::string& name) {
    KeyPlaces places;
    return read_entry<GpuType>(catalogue, "gpus", name, places);
}

Fabric read_fabric(const Catalogue& catalogue, const std::string& name) {
    KeyPlaces places;
    return read_entry<Fabric>(catalogue, "fabrics", name, places);
}

SoftwareStack read_stack(const Catalogue& catalogue, const std::string& name) {
    KeyPlaces places;
    return read_entry<SoftwareStack>(catalogue, "stacks", name, places);
}

Cluster read_cluster(const Catalogue& catalogue, const std::string& name) {
    KeyPlaces places;
    Cluster cluster = read_entry<Cluster>(catalogue, "clusters", name, places);
    check_cluster(cluster, places, "clusters");
    return cluster;
}

Model read_model(const Catalogue& catalogue, const std::string& name) {
    KeyPlaces places;
    Model model = read_entry<Model>(catalogue, "models", name, places);
    complete_and_check_model(model, places, "models");
    return model;
}

}  // namespace headway::scenarios
