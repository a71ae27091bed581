#include "scenarios/language/scenario_set.h"

#include <algorithm>
#include <stdexcept>

#include "scenarios/language/checks.h"
#include "scenarios/language/field_reader.h"
#include "scenarios/language/nearest_name.h"
#include "scenarios/language/set_fields.h"

namespace headway::scenarios {

namespace {

/// What no single key of a set can tell. Paths are those of the YAML tree.
class SetChecks {
  public:
    SetChecks(ScenarioSet& set, const KeyPlaces& places) : set_(set), places_(places) {}

    void run() {
        not_empty("jobs", set_.jobs.size());
        not_empty("clusters", set_.clusters.size());
        not_empty("families", set_.families.size());
        for (std::size_t i = 0; i < set_.jobs.size(); ++i) check_job(set_.jobs[i], item("jobs", i));
        for (std::size_t i = 0; i < set_.clusters.size(); ++i) check_choice(set_.clusters[i], item("clusters", i));
        check_layout();
        for (std::size_t i = 0; i < set_.families.size(); ++i) check_family(i);
        check_worlds();
        check_stages();
    }

  private:
    static std::string item(const std::string& list, std::size_t index) { return list + "." + std::to_string(index); }

    void not_empty(const std::string& key, std::size_t size) const {
        if (size == 0) throw places_.error(key, "nothing to draw from (at least one is needed)");
    }

    template <class Range>
    void ordered(const std::string& key, const Range& range) const {
        if (range.min > range.max)
            throw places_.error(key + ".min", format_value(range.min) + " is not allowed (at most max, " +
                                                  format_value(range.max) + ")");
    }
    /// `ordered`, and within bounds that the language sets for the value drawn.
    void within(const std::string& key, const NumberRange& range, const Bounds& bounds) const {
        ordered(key, range);
        for (const double end : {range.min, range.max})
            if (!bounds.contains(end))
                throw places_.error(key, format_value(end) + " is not allowed (" + bounds.allowed + ")");
    }
    void from_zero_excluded(const std::string& key, const TimeRange& range) const {
        ordered(key, range);
        if (range.min <= Duration())
            throw places_.error(key + ".min", format_value(range.min) + " is not allowed (more than 0)");
    }

    void check_job(JobChoice& job, const std::string& path) const {
        complete_and_check_model(job.model, places_, path + ".model");
        not_empty(path + ".global_batch", job.global_batch.size());
        not_empty(path + ".micro_batch", job.micro_batch.size());
    }

    void check_choice(const ClusterChoice& choice, const std::string& path) const {
        check_cluster(choice.cluster, places_, path + ".cluster");
        not_empty(path + ".nodes", choice.nodes.size());
        not_empty(path + ".nodes_per_rack", choice.nodes_per_rack.size());
        not_empty(path + ".oversubscription", choice.oversubscription.size());
        const auto groups = static_cast<int>(choice.cluster.node_groups.size());
        for (const int nodes : choice.nodes)
            if (nodes % groups != 0)
                throw places_.error(path + ".nodes", std::to_string(nodes) + " is not allowed (a multiple of the " +
                                                         std::to_string(groups) + " node groups)");
    }

    void check_layout() const {
        not_empty("layout.tensor", set_.layout.tensor.size());
        not_empty("layout.pipeline", set_.layout.pipeline.size());
        not_empty("layout.schedule", set_.layout.schedule.size());
        not_empty("layout.recompute", set_.layout.recompute.size());
        for (const Schedule schedule : set_.layout.schedule)
            if (schedule == Schedule::kInterleaved)
                throw places_.error("layout.schedule", "interleaved is not allowed (sets draw no virtual pipeline)");
    }

    void check_family(std::size_t index) const {
        const ScenarioFamily& family = set_.families[index];
        const std::string path = item("families", index);
        if (family.name.empty()) throw places_.error(path + ".name", "'' is not allowed (a name for tables)");
        for (std::size_t other = 0; other < index; ++other)
            if (set_.families[other].name == family.name)
                throw places_.error(path + ".name", "'" + family.name + "' is there twice");
        for (std::size_t i = 0; i < family.causes.size(); ++i) check_cause(family.causes[i], item(path + ".causes", i));
    }

    void check_cause(const DrawnCause& cause, const std::string& path) const {
        const std::vector<std::string> known(kCauseKinds.begin(), kCauseKinds.end());
        if (std::find(known.begin(), known.end(), cause.cause) == known.end())
            throw places_.error(path + ".cause",
                                "'" + cause.cause + "' is not allowed" + suggestion(cause.cause, known));
        check_target(cause, path);
        ordered(path + ".count", cause.count);
        within(path + ".severity", cause.severity, positive());
        within(path + ".start", cause.start, share());
        if (cause.lasting) from_zero_excluded(path + ".lasting", *cause.lasting);
        const bool loss = cause.cause == "gpu_loss" || cause.cause == "node_loss" || cause.cause == "node_arrival";
        if (loss && cause.lasting)
            throw places_.error(path + ".lasting", "not allowed: losses last until repaired, an arrival is an instant");
    }

    void check_target(const DrawnCause& cause, const std::string& path) const {
        using enum DrawnTarget;
        std::vector<DrawnTarget> allowed = {kOwn};
        const std::string& kind = cause.cause;
        if (kind == "airflow" || kind == "inlet" || kind == "power_cap" || kind == "co_tenant" ||
            kind == "speed_factor") {
            allowed.insert(allowed.end(), {kGpu, kWorker, kStage, kLastStage, kNode, kRack, kCluster});
        } else if (kind == "link_bandwidth" || kind == "link_flap" || kind == "link_delay") {
            allowed.insert(allowed.end(), {kNode, kUplink, kPipelineHop});
        }
        if (std::find(allowed.begin(), allowed.end(), cause.on) != allowed.end()) return;
        std::string all;
        for (const DrawnTarget target : allowed) all += (all.empty() ? "" : ", ") + std::string(word_of(target));
        throw places_.error(path + ".on",
                            std::string(word_of(cause.on)) + " is not allowed for " + kind + " (" + all + ")");
    }

    void check_worlds() const {
        const Randomisation& random = set_.randomisation;
        within("randomisation.time_noise", random.time_noise, between(0, 1));
        within("randomisation.temperature_noise", random.temperature_noise, between(0, 100));
        ordered("randomisation.delay_intervals", random.delay_intervals);
        if (random.delay_intervals.max > 100)
            throw places_.error("randomisation.delay_intervals", "at most 100 intervals are allowed");
        within("randomisation.switch_time_factor", random.switch_time_factor, between_above(0, 100));
        ordered("facility.spare_nodes", set_.facility.spare_nodes);
        ordered("facility.spare_start", set_.facility.spare_start);
        from_zero_excluded("facility.repair", set_.facility.repair);
        from_zero_excluded("facility.checkpoint_interval", set_.facility.checkpoint_interval);
        within("facility.inlet", set_.facility.inlet, between(0, 60));
        from_zero_excluded("run.between_decisions", set_.run.between_decisions);
        if (set_.run.shortest > set_.run.mean || set_.run.mean > set_.run.longest)
            throw places_.error("run", "shortest, mean and longest must not fall");
    }

    void check_stages() {
        if (set_.stages.empty()) set_.stages.push_back({"everything", 1.0, 0, 1.0, {}});
        double before = 0.0;
        for (std::size_t i = 0; i < set_.stages.size(); ++i) {
            const SetStage& stage = set_.stages[i];
            const std::string path = item("stages", i);
            if (stage.until <= before)
                throw places_.error(path + ".until", format_value(stage.until) +
                                                         " is not allowed (more than the stage before, " +
                                                         format_value(before) + ")");
            before = stage.until;
            check_stage(stage, path);
        }
        if (before != 1.0)
            throw places_.error("stages", "the last stage ends at " + format_value(before) + " (it must end at 1)");
    }

    void check_stage(const SetStage& stage, const std::string& path) const {
        std::vector<std::string> known;
        for (const ScenarioFamily& family : set_.families) known.push_back(family.name);
        for (std::size_t i = 0; i < stage.families.size(); ++i)
            if (std::find(known.begin(), known.end(), stage.families[i]) == known.end())
                throw places_.error(item(path + ".families", i),
                                    "no family '" + stage.families[i] + "'" + suggestion(stage.families[i], known));
        if (stage.largest_gpus == 0) return;
        for (const ClusterChoice& choice : set_.clusters) {
            const int per_node = choice.cluster.node(0).gpus;
            for (const int nodes : choice.nodes)
                if (nodes * per_node <= stage.largest_gpus) return;
        }
        throw places_.error(path + ".largest_gpus",
                            std::to_string(stage.largest_gpus) + " is not allowed (every cluster is larger)");
    }

    ScenarioSet& set_;
    const KeyPlaces& places_;
};

}  // namespace

bool is_scenario_set(const std::string& text, const std::string& name) {
    const YamlNode root = parse_yaml(text, name);
    const auto has = [&](const char* key) { return root.find(key) != nullptr; };
    return root.is_map() && (has("families") || (has("jobs") && has("clusters")));
}

ScenarioSet read_scenario_set(const std::filesystem::path& file, const Catalogue& catalogue) {
    return parse_scenario_set(read_text_file(file, ""), file.string(), file.parent_path(), catalogue);
}

ScenarioSet parse_scenario_set(const std::string& text, const std::string& name, const std::filesystem::path& folder,
                               const Catalogue& catalogue) {
    ReadContext context{catalogue, folder, {}, {}};
    YamlNode root = parse_yaml(text, name);
    if (!root.is_map()) throw error_at(root.place, "", "a scenario set must be a map of keys, not " + root.shown());
    if (root.find("job") != nullptr && root.find("jobs") == nullptr)
        throw error_at(root.place, "",
                       "a scenario (it has a job), where a set of scenarios is wanted (jobs, clusters, families)");
    ScenarioSet set;
    read_value(context, root, "", set, {});
    if (set.name.empty()) set.name = std::filesystem::path(name).stem().string();
    SetChecks(set, context.places).run();
    return set;
}

const SetStage& stage_at(const ScenarioSet& set, double share_of_training) {
    for (const SetStage& stage : set.stages)
        if (share_of_training < stage.until) return stage;
    if (set.stages.empty()) throw std::invalid_argument("the scenario set has no stage");
    return set.stages.back();
}

}  // namespace headway::scenarios
