#include "scenarios/record/record_parse.h"

#include "scenarios/record/decision_parse.h"
#include "scenarios/record/json_fields.h"
#include "scenarios/record/learning_parse.h"
#include "scenarios/record/record_lines.h"

namespace headway::scenarios {

namespace {

void check_format(const Json& json) {
    const auto format = json.find("format");
    if (format == json.end() || *format != kRecordFormat) reject_line("this is not a run record");
    const auto version = json_as<std::int64_t>(json_member(json, "version"), "version");
    if (version != kRecordVersion) {
        reject_line("version " + std::to_string(version) +
                    " of the run record cannot be read (this program reads version " + std::to_string(kRecordVersion) +
                    ")");
    }
}

void parse_header_fields(const Json& json, RunHeader& header, RecordLevel& level) {
    json_field(json, "seed", header.seed);
    json_field(json, "policy", header.policy);
    try {
        level = record_level(json_as<std::string>(json_member(json, "level"), "level"));
    } catch (const std::invalid_argument& error) {
        reject_line(error.what());
    }
    json_field(json, "planned_iterations", header.planned_iterations);
    json_time(json, "planned_ns", header.planned_ns);
    json_time(json, "telemetry_period_ns", header.telemetry_period_ns);
    json_field(json, "tokens_per_iteration", header.tokens_per_iteration);
    json_time(json, "healthy_iteration_ns", header.healthy_iteration_ns);
    json_field(json, "model_flops", header.model_flops);
    json_field(json, "hardware_flops", header.hardware_flops);
    json_field(json, "peak_flops_per_second", header.peak_flops_per_second);
}

void parse_scenario_fields(const Json& json, RunHeader& header) {
    json_field(json, "name", header.scenario);
    json_field(json, "yaml", header.scenario_yaml);
    for (const Json& item : json_list(json, "disturbances")) {
        DisturbanceFacts& facts = header.disturbances.emplace_back();
        json_field(item, "name", facts.name);
        json_field(item, "kind", facts.kind);
        json_time(item, "start_ns", facts.start_ns);
        json_field(item, "duration_ns", facts.duration_ns);
        if (facts.duration_ns != -1) json_time(item, "duration_ns", facts.duration_ns);
    }
}

/// Returns how many GPUs the cluster has.
int parse_topology_fields(const Json& json, RunHeader& header) {
    json_field(json, "nodes_per_rack", header.nodes_per_rack);
    if (header.nodes_per_rack < 1) reject_line("'nodes_per_rack' is below 1");
    std::int64_t gpus = 0;
    for (const Json& item : json_list(json, "node_groups")) {
        TopologyGroup& group = header.node_groups.emplace_back();
        json_field(item, "nodes", group.nodes);
        json_field(item, "gpus_per_node", group.gpus_per_node);
        json_field(item, "gpu", group.gpu);
        if (group.nodes < 0 || group.gpus_per_node < 1) reject_line("'node_groups' holds an impossible count");
        gpus += static_cast<std::int64_t>(group.nodes) * group.gpus_per_node;
        if (gpus > 100'000'000) reject_line("'node_groups' holds an impossible count");
    }
    header.plan = parse_plan(json_member(json, "plan"), gpus);
    return static_cast<int>(gpus);
}

/// Advances `end_ns`, where the last iteration ended.
IterationEvent parse_iteration(const Json& json, std::size_t disturbances, std::int64_t& end_ns) {
    IterationEvent event;
    json_field(json, "index", event.index);
    if (event.index < 0 || event.index > kMostIterations) reject_line("'index' is no iteration");
    end_ns = json_span(json, event.start_ns, event.duration_ns, end_ns);
    json_field(json, "repeats", event.repeats);
    json_field(json, "compute_ns", event.shares.compute_ns);
    json_field(json, "bubble_ns", event.shares.bubble_ns);
    json_field(json, "tensor_ns", event.shares.tensor_ns);
    json_field(json, "pipeline_ns", event.shares.pipeline_ns);
    json_field(json, "data_ns", event.shares.data_ns);
    json_field(json, "straggling_ns", event.shares.straggling_ns);
    json_field(json, "recovery_ns", event.shares.recovery_ns);
    const TimeShares& shares = event.shares;
    for (const std::int64_t share : {shares.compute_ns, shares.bubble_ns, shares.tensor_ns, shares.pipeline_ns,
                                     shares.data_ns, shares.straggling_ns, shares.recovery_ns}) {
        if (share < -event.duration_ns || share > event.duration_ns) reject_line("a share exceeds 'duration_ns'");
    }
    event.disturbance_cost_ns.assign(disturbances, 0);
    for (const Json& pair : json_list(json, "disturbance_cost_ns")) {
        if (!pair.is_array() || pair.size() != 2) reject_line("'disturbance_cost_ns' is not a list of pairs");
        const auto index = json_as<std::size_t>(pair[0], "disturbance_cost_ns");
        if (index >= disturbances) reject_line("'disturbance_cost_ns' names a disturbance that does not exist");
        const auto cost_ns = json_as<std::int64_t>(pair[1], "disturbance_cost_ns");
        if (cost_ns < -event.duration_ns || cost_ns > event.duration_ns) reject_line("a cost exceeds 'duration_ns'");
        event.disturbance_cost_ns[index] = cost_ns;
    }
    if (json.contains("loss")) event.loss = json_as<double>(json["loss"], "loss");
    return event;
}

/// Advances `end_ns`, where the last pause ended.
PauseEvent parse_pause(const Json& json, bool is_switch, std::size_t disturbances, int gpus, std::int64_t& end_ns) {
    PauseEvent event;
    event.reason = is_switch ? PauseEvent::Reason::kSwitch : json_choice<PauseEvent::Reason>(json, "reason", 2);
    end_ns = json_span(json, event.start_ns, event.duration_ns, end_ns);
    json_field(json, "iterations_lost", event.iterations_lost);
    if (event.iterations_lost < 0 || event.iterations_lost > kMostIterations) {
        reject_line("'iterations_lost' is no count of iterations");
    }
    json_field(json, "disturbance", event.disturbance);
    json_field(json, "what", event.what);
    if (const auto plan = json.find("plan"); plan != json.end()) event.plan = parse_plan(*plan, gpus);
    if (event.disturbance < -1 || event.disturbance >= static_cast<std::int64_t>(disturbances)) {
        reject_line("'disturbance' does not exist");
    }
    return event;
}

/// Changed values into the last known state of each GPU; returns the GPUs that changed, whole.
std::vector<TelemetryEvent> parse_telemetry(const Json& json, std::vector<TelemetryEvent>& state) {
    std::int64_t time_ns = 0;
    json_time(json, "time_ns", time_ns);
    std::vector<char> changed(state.size(), 0);
    const auto column = [&](const char* key, auto set) {
        const auto found = json.find(key);
        if (found == json.end()) return;
        std::vector<int> gpus;
        std::vector<double> values;
        json_field(*found, "gpu", gpus);
        json_field(*found, "value", values);
        check_columns(gpus.size(), values.size(), key);
        for (std::size_t i = 0; i < gpus.size(); ++i) {
            if (gpus[i] < 0 || static_cast<std::size_t>(gpus[i]) >= state.size()) {
                reject_line("'" + std::string(key) + "' names a GPU that does not exist");
            }
            set(state[static_cast<std::size_t>(gpus[i])], values[i]);
            changed[static_cast<std::size_t>(gpus[i])] = 1;
        }
    };
    column("temperature_c", [](TelemetryEvent& gpu, double value) { gpu.temperature_c = value; });
    column("sm_clock_mhz", [](TelemetryEvent& gpu, double value) { gpu.sm_clock_mhz = value; });
    column("power_w", [](TelemetryEvent& gpu, double value) { gpu.power_w = value; });
    column("speed", [](TelemetryEvent& gpu, double value) { gpu.speed = value; });
    column("throttle_reasons", [](TelemetryEvent& gpu, double value) {
        if (!(value >= 0.0 && value <= 4294967295.0)) reject_line("'throttle_reasons' is out of range");
        gpu.throttle_reasons = static_cast<std::uint32_t>(value);
    });
    std::vector<TelemetryEvent> events;
    for (std::size_t gpu = 0; gpu < state.size(); ++gpu) {
        if (!changed[gpu]) continue;
        state[gpu].gpu = static_cast<int>(gpu);
        state[gpu].time_ns = time_ns;
        events.push_back(state[gpu]);
    }
    return events;
}

std::vector<LinkLoadEvent> parse_link_load(const Json& json, std::vector<std::string>& links) {
    std::int64_t time_ns = 0;
    json_time(json, "time_ns", time_ns);
    for (const Json& name : json_list(json, "new_links")) links.push_back(json_as<std::string>(name, "new_links"));
    std::vector<std::size_t> numbers;
    std::vector<double> loads;
    json_field(json, "link", numbers);
    json_field(json, "utilisation", loads);
    check_columns(numbers.size(), loads.size(), "link");
    std::vector<LinkLoadEvent> events;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (numbers[i] >= links.size()) reject_line("'link' names a link that does not exist");
        events.push_back({time_ns, links[numbers[i]], loads[i]});
    }
    return events;
}

ParsedOps parse_ops(const Json& json) {
    ParsedOps ops;
    json_field(json, "iteration", ops.iteration);
    json_time(json, "start_ns", ops.start_ns);
    const auto worker = json_as<int>(json_member(json, "worker"), "worker");
    std::vector<std::string> names;
    std::vector<int> chunks, micro_batches;
    std::vector<std::int64_t> begins, ends;
    json_field(json, "op", names);
    json_field(json, "chunk", chunks);
    json_field(json, "micro_batch", micro_batches);
    json_field(json, "begin_ns", begins);
    json_field(json, "end_ns", ends);
    for (const std::size_t length : {chunks.size(), micro_batches.size(), begins.size(), ends.size()}) {
        check_columns(length, names.size(), "op");
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
        std::uint8_t op = 0;
        while (op < kOpKinds && names[i] != op_name(op)) ++op;
        if (op == kOpKinds) reject_line("'op': unknown value '" + names[i] + "'");
        ops.entries.push_back({worker, op, chunks[i], micro_batches[i], begins[i], ends[i]});
    }
    return ops;
}

ParsedFooter parse_footer(const Json& json) {
    ParsedFooter parsed;
    const auto status = json_as<std::string>(json_member(json, "status"), "status");
    if (status != "complete" && status != "interrupted") reject_line("'status': unknown value '" + status + "'");
    parsed.footer.complete = status == "complete";
    json_time(json, "wall_ns", parsed.footer.wall_ns);
    json_field(json, "decisions", parsed.footer.decisions);
    json_field(json, "switches", parsed.footer.switches);
    const Json& columns = json_member(json, "gpus");
    std::vector<int> gpus;
    std::vector<double> mean, least, hottest;
    json_field(columns, "gpu", gpus);
    json_field(columns, "mean_speed", mean);
    json_field(columns, "min_speed", least);
    json_field(columns, "max_temperature_c", hottest);
    for (const std::size_t length : {mean.size(), least.size(), hottest.size()})
        check_columns(length, gpus.size(), "gpus");
    for (std::size_t i = 0; i < gpus.size(); ++i) {
        parsed.footer.gpus.push_back({gpus[i], mean[i], least[i], hottest[i]});
    }
    const Json& counts = json_member(json, "counts");
    if (!counts.is_object()) reject_line("'counts' is not an object");
    for (const auto& [kind, lines] : counts.items()) {
        parsed.counts.emplace_back(kind, json_as<std::int64_t>(lines, "counts"));
    }
    json_field(json, "digest", parsed.digest);
    return parsed;
}

}  // namespace

ParsedLine RecordParser::parse(std::string_view line, std::string& kind) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    const bool first = expect_ == Expect::kHeader;
    if (!json.is_object() || !json.contains("record") || !json["record"].is_string()) {
        reject_line(first ? "this is not a run record" : "this line is not a JSON object with a 'record'");
    }
    kind = json["record"].get<std::string>();
    if (kind == "provenance" && !first) {
        json_field(json, "program", provenance_.program);
        json_field(json, "machine", provenance_.machine);
        json_field(json, "started", provenance_.started);
        return ParsedProvenance{};
    }
    const auto expected = [&](const char* wanted) {
        if (kind == wanted) return;
        reject_line(first ? "this is not a run record"
                          : "a '" + std::string(wanted) + "' line was expected here, not '" + kind + "'");
    };
    switch (expect_) {
        case Expect::kHeader:
            expected("header");
            check_format(json);
            if (is_learning_header(json)) {
                expect_ = Expect::kLearning;
                return parse_learning_header(json);
            }
            parse_header_fields(json, header_, level_);
            expect_ = Expect::kScenario;
            return ParsedHeader{};
        case Expect::kScenario:
            expected("scenario");
            parse_scenario_fields(json, header_);
            expect_ = Expect::kTopology;
            return ParsedHeader{};
        case Expect::kTopology:
            expected("topology");
            gpus_ = parse_topology_fields(json, header_);
            decision_state_.plan = header_.plan;
            telemetry_.resize(static_cast<std::size_t>(gpus_));
            expect_ = Expect::kEvents;
            return ParsedTopology{};
        case Expect::kLearning:
            if (kind == "training_update") return parse_training_update(json);
            if (kind == "evaluation") return parse_evaluation(json);
            if (kind == "footer") return parse_footer(json);
            reject_line("a '" + kind + "' line has no place in the record of a training or evaluation");
        case Expect::kEvents:
            break;
    }
    const std::size_t disturbances = header_.disturbances.size();
    if (kind == "iteration") {
        ++iterations_;
        return parse_iteration(json, disturbances, iterations_end_ns_);
    }
    if (kind == "telemetry") return parse_telemetry(json, telemetry_);
    if (kind == "link_load") return parse_link_load(json, links_);
    if (kind == "pause" || kind == "switch") {
        const PauseEvent event = parse_pause(json, kind == "switch", disturbances, gpus_, pauses_end_ns_);
        lost_ += event.iterations_lost;
        if (level_ >= RecordLevel::kIterations && lost_ > iterations_) {
            reject_line("'iterations_lost' is more than were trained");
        }
        return event;
    }
    if (kind == "decision") return parse_decision(json, gpus_, decision_state_);
    if (kind == "op") return parse_ops(json);
    if (kind == "footer") {
        ParsedFooter parsed = parse_footer(json);
        for (const GpuSummary& gpu : parsed.footer.gpus) {
            if (gpu.gpu < 0 || gpu.gpu >= gpus_) reject_line("'gpus' names a GPU that does not exist");
        }
        return parsed;
    }
    if (kind == "disturbance") {
        DisturbanceEvent event;
        json_time(json, "time_ns", event.time_ns);
        json_field(json, "index", event.index);
        json_field(json, "begins", event.begins);
        if (event.index < 0 || static_cast<std::size_t>(event.index) >= disturbances)
            reject_line("'index' does not exist");
        return event;
    }
    if (kind == "log") {
        LogEvent event;
        json_time(json, "time_ns", event.time_ns);
        event.severity = json_choice<LogEvent::Severity>(json, "severity", 3);
        json_field(json, "text", event.text);
        return event;
    }
    reject_line("unknown kind of record '" + kind + "'");
}

}  // namespace headway::scenarios
