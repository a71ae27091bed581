#include "scenarios/record/decision_lines.h"

#include <numeric>

#include "scenarios/record/json_text.h"
#include "scenarios/record/plan_lines.h"
#include "scenarios/record/record_lines.h"

namespace headway::scenarios {

namespace {

template <class T>
void changed_column(JsonText& json, const char* key, const std::vector<T>& column, std::vector<T>& before) {
    if (column == before) return;
    json.field(key, column);
    before = column;
}

void write_measured(JsonText& json, const MeasuredColumns& measured, MeasuredColumns& before) {
    json.key("measured").begin_object();
    changed_column(json, "gpu", measured.gpu, before.gpu);
    changed_column(json, "compute_ns", measured.compute_ns, before.compute_ns);
    changed_column(json, "exposed_ns", measured.exposed_ns, before.exposed_ns);
    changed_column(json, "idle_ns", measured.idle_ns, before.idle_ns);
    changed_column(json, "temperature_c", measured.temperature_c, before.temperature_c);
    changed_column(json, "sm_clock_mhz", measured.sm_clock_mhz, before.sm_clock_mhz);
    changed_column(json, "power_w", measured.power_w, before.power_w);
    changed_column(json, "throttle_reasons", measured.throttle_reasons, before.throttle_reasons);
    changed_column(json, "memory_bytes", measured.memory_bytes, before.memory_bytes);
    changed_column(json, "group_kind", measured.group_kind, before.group_kind);
    changed_column(json, "group_index", measured.group_index, before.group_index);
    changed_column(json, "group_bytes_per_s", measured.group_bytes_per_s, before.group_bytes_per_s);
    json.end_object();
}

/// The first one, then differences to the one before: mostly zeros.
void write_iterations(JsonText& json, const std::vector<std::int64_t>& iterations_ns) {
    std::vector<std::int64_t> differences = iterations_ns;
    std::adjacent_difference(iterations_ns.begin(), iterations_ns.end(), differences.begin());
    json.field("iterations_ns", differences);
}

void write_candidate(JsonText& json, const DecisionCandidate& candidate) {
    json.begin_object().field("kind", candidate.kind).field("why", candidate.why);
    if (candidate != DecisionCandidate{candidate.kind, candidate.why}) {
        json.field("iteration_ns", candidate.iteration_ns).field("pause_ns", candidate.pause_ns);
        if (candidate.restart_ns != candidate.pause_ns) json.field("restart_ns", candidate.restart_ns);
        if (candidate.way_back_ns != 0) json.field("way_back_ns", candidate.way_back_ns);
        json.field("moved_bytes", candidate.moved_bytes).field("memory_bytes", candidate.memory_bytes);
    }
    json.end_object();
}

}  // namespace

std::string decision_line(const DecisionEvent& event, DecisionState& state) {
    JsonText json;
    json.begin_object()
        .field("record", "decision")
        .field("time_ns", event.time_ns)
        .field("iteration", event.iteration)
        .field("iteration_ns", event.iteration_ns);
    if (!event.iterations_ns.empty()) write_iterations(json, event.iterations_ns);
    json.field("lost_gpus", event.lost_gpus);
    if (!event.lost_gpus.empty()) json.field("noticed_ns", event.noticed_ns);
    if (!event.unavailable_gpus.empty()) json.field("unavailable_gpus", event.unavailable_gpus);
    if (!event.plan.gpu_of_rank.empty() && event.plan != state.plan) {
        json.key("plan");
        write_plan(json, event.plan);
        state.plan = event.plan;
    }
    if (event.measured != MeasuredColumns{}) write_measured(json, event.measured, state.measured);
    json.key("candidates").begin_array();
    for (const DecisionCandidate& candidate : event.candidates) write_candidate(json, candidate);
    json.end_array().field("chosen", event.chosen);
    if (event.by != DecisionEvent::By::kPolicy) json.field("by", record_name(event.by));
    if (event.chosen_plan) {
        json.key("chosen_plan");
        write_plan(json, *event.chosen_plan);
        state.plan = *event.chosen_plan;
    }
    if (event.shadow) {
        json.key("shadow")
            .begin_object()
            .field("policy", event.shadow->policy)
            .field("chosen", event.shadow->chosen)
            .field("regret_ns", event.shadow->regret_ns)
            .end_object();
    }
    return json.end_object().take();
}

}  // namespace headway::scenarios
