#include "scenarios/record/decision_parse.h"

#include <algorithm>
#include <numeric>

namespace headway::scenarios {

Plan parse_plan(const Json& json, std::int64_t gpus) {
    Plan plan;
    Layout& layout = plan.layout;
    json_field(json, "tensor", layout.tensor);
    json_field(json, "pipeline", layout.pipeline);
    json_field(json, "data", layout.data);
    json_field(json, "context", layout.context);
    json_field(json, "virtual_pipeline", layout.virtual_pipeline);
    json_field(json, "sequence_parallel", layout.sequence_parallel);
    layout.schedule = json_choice<Schedule>(json, "schedule", 4);
    json_field(json, "zero_bubble_memory", layout.zero_bubble_memory);
    layout.recompute = json_choice<Recompute>(json, "recompute", 3);
    json_field(json, "distributed_optimizer", layout.distributed_optimizer);
    json_field(json, "overlap_grad_reduce", layout.overlap_grad_reduce);
    json_field(json, "overlap_param_gather", layout.overlap_param_gather);
    json_field(json, "overlap_tensor_comm", layout.overlap_tensor_comm);
    json_field(json, "overlap_pipeline_comm", layout.overlap_pipeline_comm);
    json_field(json, "gpu_of_rank", plan.gpu_of_rank);
    json_field(json, "layers_of_virtual_stage", plan.layers_of_cell);
    json_field(json, "micro_batches_of_replica", plan.micro_batches_of_replica);
    for (const int degree : {layout.tensor, layout.pipeline, layout.data, layout.context, layout.virtual_pipeline}) {
        if (degree < 1) reject_line("'plan' holds a degree below 1");
    }
    const std::int64_t ranks = static_cast<std::int64_t>(plan.gpu_of_rank.size());
    std::int64_t product = 1;
    for (const int degree : {layout.tensor, layout.pipeline, layout.data, layout.context}) {
        product = std::min<std::int64_t>(product * degree, 1'000'000'000);
    }
    if (product != ranks) reject_line("'gpu_of_rank' does not have a GPU for every rank");
    if (plan.layers_of_cell.size() == static_cast<std::size_t>(layout.virtual_stages()))
        plan.layers_of_cell = same_layers(plan.layers_of_cell, layout.data);
    for (const int gpu : plan.gpu_of_rank) {
        if (gpu < 0 || gpu >= gpus) reject_line("'gpu_of_rank' names a GPU that does not exist");
    }
    return plan;
}

namespace {

/// A column that is not in the line is as it was in the decision before.
template <class T>
void carried_column(const Json& json, const char* key, std::vector<T>& column) {
    if (json.find(key) != json.end()) json_field(json, key, column);
}

void parse_measured(const Json& json, MeasuredColumns& columns) {
    carried_column(json, "gpu", columns.gpu);
    carried_column(json, "compute_ns", columns.compute_ns);
    carried_column(json, "exposed_ns", columns.exposed_ns);
    carried_column(json, "idle_ns", columns.idle_ns);
    carried_column(json, "temperature_c", columns.temperature_c);
    carried_column(json, "sm_clock_mhz", columns.sm_clock_mhz);
    carried_column(json, "power_w", columns.power_w);
    carried_column(json, "throttle_reasons", columns.throttle_reasons);
    carried_column(json, "memory_bytes", columns.memory_bytes);
    carried_column(json, "group_kind", columns.group_kind);
    carried_column(json, "group_index", columns.group_index);
    carried_column(json, "group_bytes_per_s", columns.group_bytes_per_s);
    for (const std::size_t length : {columns.compute_ns.size(), columns.exposed_ns.size(), columns.idle_ns.size(),
                                     columns.temperature_c.size(), columns.sm_clock_mhz.size(), columns.power_w.size(),
                                     columns.throttle_reasons.size(), columns.memory_bytes.size()}) {
        check_columns(length, columns.gpu.size(), "measured");
    }
    check_columns(columns.group_kind.size(), columns.group_index.size(), "measured");
    check_columns(columns.group_bytes_per_s.size(), columns.group_index.size(), "measured");
}

int parse_choice(const Json& json, std::size_t candidates) {
    const auto chosen = json_as<int>(json_member(json, "chosen"), "chosen");
    if (chosen < 0 || static_cast<std::size_t>(chosen) >= candidates) {
        reject_line("'chosen' is not one of the candidates");
    }
    return chosen;
}

}  // namespace

DecisionEvent parse_decision(const Json& json, std::int64_t gpus, DecisionState& state) {
    DecisionEvent event;
    json_time(json, "time_ns", event.time_ns);
    json_field(json, "iteration", event.iteration);
    json_field(json, "iteration_ns", event.iteration_ns);
    if (json.find("iterations_ns") != json.end()) {
        json_field(json, "iterations_ns", event.iterations_ns);
        std::partial_sum(event.iterations_ns.begin(), event.iterations_ns.end(), event.iterations_ns.begin());
    }
    json_field(json, "lost_gpus", event.lost_gpus);
    if (!event.lost_gpus.empty()) json_time(json, "noticed_ns", event.noticed_ns);
    if (json.find("unavailable_gpus") != json.end()) json_field(json, "unavailable_gpus", event.unavailable_gpus);
    if (const auto plan = json.find("plan"); plan != json.end()) state.plan = parse_plan(*plan, gpus);
    event.plan = state.plan;
    if (const auto measured = json.find("measured"); measured != json.end()) {
        parse_measured(*measured, state.measured);
        event.measured = state.measured;
    }
    for (const Json& item : json_list(json, "candidates")) {
        DecisionCandidate& candidate = event.candidates.emplace_back();
        json_field(item, "kind", candidate.kind);
        json_field(item, "why", candidate.why);
        if (item.find("iteration_ns") == item.end()) continue;
        json_time(item, "iteration_ns", candidate.iteration_ns);
        json_time(item, "pause_ns", candidate.pause_ns);
        candidate.restart_ns = candidate.pause_ns;
        if (item.find("restart_ns") != item.end()) json_time(item, "restart_ns", candidate.restart_ns);
        if (item.find("way_back_ns") != item.end()) json_time(item, "way_back_ns", candidate.way_back_ns);
        json_field(item, "moved_bytes", candidate.moved_bytes);
        json_field(item, "memory_bytes", candidate.memory_bytes);
    }
    event.chosen = parse_choice(json, event.candidates.size());
    if (json.find("by") != json.end()) event.by = json_choice<DecisionEvent::By>(json, "by", 3);
    if (const auto plan = json.find("chosen_plan"); plan != json.end()) {
        event.chosen_plan = parse_plan(*plan, gpus);
        state.plan = *event.chosen_plan;
    }
    if (const auto shadow = json.find("shadow"); shadow != json.end()) {
        event.shadow.emplace();
        json_field(*shadow, "policy", event.shadow->policy);
        event.shadow->chosen = parse_choice(*shadow, event.candidates.size());
        json_field(*shadow, "regret_ns", event.shadow->regret_ns);
    }
    return event;
}

}  // namespace headway::scenarios
