#include "scenarios/record/record_lines.h"

#include <array>
#include <cstdio>
#include <stdexcept>

#include "scenarios/language/program.h"
#include "scenarios/record/json_text.h"
#include "scenarios/record/plan_lines.h"

namespace headway::scenarios {

namespace {

JsonText begin_line(const char* kind) {
    JsonText json;
    json.begin_object().field("record", kind);
    return json;
}

/// One column of a list of structs as a JSON array.
template <class T, class Get>
void write_column(JsonText& json, const char* key, const std::vector<T>& rows, Get get) {
    json.key(key).begin_array();
    for (const T& row : rows) json.value(get(row));
    json.end_array();
}

}  // namespace

std::string header_line(const RunHeader& header, RecordLevel level) {
    return begin_line("header")
        .field("format", kRecordFormat)
        .field("version", kRecordVersion)
        .field("seed", header.seed)
        .field("policy", header.policy)
        .field("level", name_of(level))
        .field("planned_iterations", header.planned_iterations)
        .field("planned_ns", header.planned_ns)
        .field("telemetry_period_ns", header.telemetry_period_ns)
        .field("tokens_per_iteration", header.tokens_per_iteration)
        .field("healthy_iteration_ns", header.healthy_iteration_ns)
        .field("model_flops", header.model_flops)
        .field("hardware_flops", header.hardware_flops)
        .field("peak_flops_per_second", header.peak_flops_per_second)
        .end_object()
        .take();
}

std::string provenance_line(const Provenance& provenance) {
    return begin_line("provenance")
        .field("program", provenance.program)
        .field("machine", provenance.machine)
        .field("started", provenance.started)
        .end_object()
        .take();
}

std::string scenario_line(const RunHeader& header) {
    JsonText json = begin_line("scenario");
    json.field("name", header.scenario).field("yaml", header.scenario_yaml).key("disturbances").begin_array();
    for (const DisturbanceFacts& disturbance : header.disturbances) {
        json.begin_object()
            .field("name", disturbance.name)
            .field("kind", disturbance.kind)
            .field("start_ns", disturbance.start_ns)
            .field("duration_ns", disturbance.duration_ns)
            .end_object();
    }
    return json.end_array().end_object().take();
}

std::string topology_line(const RunHeader& header) {
    JsonText json = begin_line("topology");
    json.field("nodes_per_rack", header.nodes_per_rack).key("node_groups").begin_array();
    for (const TopologyGroup& group : header.node_groups) {
        json.begin_object()
            .field("nodes", group.nodes)
            .field("gpus_per_node", group.gpus_per_node)
            .field("gpu", group.gpu)
            .end_object();
    }
    json.end_array().key("plan");
    write_plan(json, header.plan);
    return json.end_object().take();
}

std::string iteration_line(const IterationEvent& event) {
    JsonText json = begin_line("iteration");
    json.field("index", event.index)
        .field("start_ns", event.start_ns)
        .field("duration_ns", event.duration_ns)
        .field("repeats", event.repeats)
        .field("compute_ns", event.shares.compute_ns)
        .field("bubble_ns", event.shares.bubble_ns)
        .field("tensor_ns", event.shares.tensor_ns)
        .field("pipeline_ns", event.shares.pipeline_ns)
        .field("data_ns", event.shares.data_ns)
        .field("straggling_ns", event.shares.straggling_ns)
        .field("recovery_ns", event.shares.recovery_ns)
        .key("disturbance_cost_ns")
        .begin_array();
    for (std::size_t i = 0; i < event.disturbance_cost_ns.size(); ++i) {
        if (event.disturbance_cost_ns[i] == 0) continue;
        json.begin_array().value(i).value(event.disturbance_cost_ns[i]).end_array();
    }
    json.end_array();
    if (event.loss) json.field("loss", *event.loss);
    return json.end_object().take();
}

std::string disturbance_line(const DisturbanceEvent& event) {
    return begin_line("disturbance")
        .field("time_ns", event.time_ns)
        .field("index", event.index)
        .field("begins", event.begins)
        .end_object()
        .take();
}

std::string pause_line(const PauseEvent& event) {
    const bool is_switch = event.reason == PauseEvent::Reason::kSwitch;
    JsonText json = begin_line(is_switch ? "switch" : "pause");
    if (!is_switch) json.field("reason", record_name(event.reason));
    json.field("start_ns", event.start_ns)
        .field("duration_ns", event.duration_ns)
        .field("iterations_lost", event.iterations_lost)
        .field("disturbance", event.disturbance)
        .field("what", event.what);
    if (event.plan) {
        json.key("plan");
        write_plan(json, *event.plan);
    }
    return json.end_object().take();
}

std::string log_line(const LogEvent& event) {
    return begin_line("log")
        .field("time_ns", event.time_ns)
        .field("severity", record_name(event.severity))
        .field("text", event.text)
        .end_object()
        .take();
}

std::string op_line(std::int64_t iteration, std::int64_t start_ns, const std::vector<TimelineEntry>& entries) {
    JsonText json = begin_line("op");
    json.field("iteration", iteration)
        .field("start_ns", start_ns)
        .field("worker", entries.empty() ? 0 : entries.front().worker);
    write_column(json, "op", entries, [](const TimelineEntry& entry) { return op_name(entry.op); });
    write_column(json, "chunk", entries, [](const TimelineEntry& entry) { return entry.chunk; });
    write_column(json, "micro_batch", entries, [](const TimelineEntry& entry) { return entry.micro_batch; });
    write_column(json, "begin_ns", entries, [](const TimelineEntry& entry) { return entry.start_ns; });
    write_column(json, "end_ns", entries, [](const TimelineEntry& entry) { return entry.end_ns; });
    return json.end_object().take();
}

std::string footer_line(const RunFooter& footer, const std::vector<RecordCount>& counts, RecordDigest digest) {
    JsonText json = begin_line("footer");
    json.field("status", footer.complete ? "complete" : "interrupted")
        .field("wall_ns", footer.wall_ns)
        .field("decisions", footer.decisions)
        .field("switches", footer.switches)
        .key("gpus")
        .begin_object();
    write_column(json, "gpu", footer.gpus, [](const GpuSummary& gpu) { return gpu.gpu; });
    write_column(json, "mean_speed", footer.gpus, [](const GpuSummary& gpu) { return gpu.mean_speed; });
    write_column(json, "min_speed", footer.gpus, [](const GpuSummary& gpu) { return gpu.min_speed; });
    write_column(json, "max_temperature_c", footer.gpus, [](const GpuSummary& gpu) { return gpu.max_temperature_c; });
    json.end_object().key("counts").begin_object();
    for (const RecordCount& count : counts) json.field(count.kind, count.lines);
    std::string line = json.end_object().take();
    digest.add(line);
    return line.append(kDigestKey).append(digest.text()).append("\"}");
}

const char* record_name(PauseEvent::Reason reason) {
    switch (reason) {
        case PauseEvent::Reason::kCheckpoint:
            return "checkpoint";
        case PauseEvent::Reason::kLoss:
            return "loss";
        case PauseEvent::Reason::kSwitch:
            return "switch";
    }
    throw std::logic_error("a pause of unknown reason");
}

const char* record_name(LogEvent::Severity severity) {
    switch (severity) {
        case LogEvent::Severity::kInfo:
            return "info";
        case LogEvent::Severity::kWarning:
            return "warning";
        case LogEvent::Severity::kError:
            return "error";
    }
    throw std::logic_error("a log line of unknown severity");
}

const char* record_name(DecisionEvent::By by) {
    switch (by) {
        case DecisionEvent::By::kPolicy:
            return "policy";
        case DecisionEvent::By::kRule:
            return "rule";
        case DecisionEvent::By::kRollback:
            return "rollback";
    }
    throw std::logic_error("a decision by nobody known");
}

const char* record_name(Schedule schedule) {
    switch (schedule) {
        case Schedule::kGPipe:
            return "gpipe";
        case Schedule::kOneForwardOneBackward:
            return "1f1b";
        case Schedule::kInterleaved:
            return "interleaved";
        case Schedule::kZeroBubble:
            return "zero-bubble";
    }
    throw std::logic_error("an unknown schedule");
}

const char* record_name(Recompute recompute) {
    switch (recompute) {
        case Recompute::kNone:
            return "none";
        case Recompute::kSelective:
            return "selective";
        case Recompute::kFull:
            return "full";
    }
    throw std::logic_error("an unknown kind of recompute");
}

const char* op_name(std::uint8_t op) {
    constexpr std::array<const char*, kOpKinds> kNames = {"forward",          "backward",
                                                          "backward_input",   "backward_weight",
                                                          "send_activation",  "receive_activation",
                                                          "send_gradient",    "receive_gradient",
                                                          "reduce_gradients", "reduce_tied_embedding",
                                                          "optimizer_step",   "gather_parameters"};
    static_assert(static_cast<int>(Op::kGatherParameters) + 1 == kOpKinds);
    if (op >= kNames.size()) throw std::logic_error("an unknown operation");
    return kNames[op];
}

std::string RecordDigest::text() const {
    char text[32];
    std::snprintf(text, sizeof text, "fnv1a64:%016llx", static_cast<unsigned long long>(state_));
    return text;
}

}  // namespace headway::scenarios
