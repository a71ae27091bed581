#include <stdexcept>

#include "scenarios/record/figures.h"
#include "scenarios/record/json_text.h"
#include "scenarios/record/report.h"

namespace headway::scenarios {

namespace {

double json_seconds(std::int64_t ns) {
    return static_cast<double>(ns) / 1e9;
}

/// Writes the figures from `first` on, up to the one called `until`, each by `write(figure)`; groups become objects.
template <class Write>
void write_figures(JsonText& json, std::string_view from, std::string_view until, Write write) {
    std::string_view open_group;
    bool on = false;
    for (const Figure& figure : kFigures) {
        on = on || figure.key == from;
        if (figure.key == until) break;
        if (!on) continue;
        if (figure.group != open_group) {
            if (!open_group.empty()) json.end_object();
            if (!figure.group.empty()) json.key(figure.group).begin_object();
            open_group = figure.group;
        }
        json.key(figure.key);
        write(figure);
    }
    if (!open_group.empty()) json.end_object();
}

void write_figure_value(JsonText& json, const Figure& figure, double value) {
    if (figure.unit == FigureUnit::kCount) {
        json.value(static_cast<std::int64_t>(value));
    } else {
        json.value(value);
    }
}

void write_disturbances(JsonText& json, const RunSummary& summary) {
    json.key("disturbances").begin_array();
    for (const DisturbanceCost& cost : summary.disturbances) {
        json.begin_object()
            .field("name", cost.name)
            .field("kind", cost.kind)
            .field("start_s", json_seconds(cost.start_ns))
            .key("duration_s");
        if (cost.duration_ns < 0) {
            json.null();
        } else {
            json.value(json_seconds(cost.duration_ns));
        }
        json.field("cost_s", json_seconds(cost.cost_ns()))
            .field("share", cost.share)
            .field("slowed_s", json_seconds(cost.slowed_ns))
            .field("paused_s", json_seconds(cost.paused_ns))
            .field("repeated_s", json_seconds(cost.repeated_ns))
            .field("iterations_lost", cost.iterations_lost)
            .field("what", cost.what)
            .end_object();
    }
    json.end_array();
}

void write_slowest(JsonText& json, const RunSummary& summary) {
    json.key("slowest_gpus").begin_array();
    for (const SlowGpu& slow : summary.slowest) {
        json.begin_object()
            .field("gpu", slow.figures.gpu)
            .field("node", slow.node)
            .field("slot", slow.slot)
            .field("rack", slow.rack)
            .field("stage", slow.stage)
            .field("replica", slow.replica)
            .field("mean_speed", slow.figures.mean_speed)
            .field("min_speed", slow.figures.min_speed)
            .field("max_temperature_c", slow.figures.max_temperature_c)
            .end_object();
    }
    json.end_array();
}

void write_run(JsonText& json, const RunSummary& summary) {
    json.begin_object().field("scenario", summary.scenario).field("policy", summary.policy).field("seed", summary.seed);
    const auto write = [&](const Figure& figure) { write_figure_value(json, figure, figure.of(summary)); };
    write_figures(json, "iterations", "decisions", write);
    write_disturbances(json, summary);
    write_figures(json, "decisions", "", write);
    json.field("decisions_without_choice", summary.decisions_without_choice)
        .field("handed_over", summary.handed_over)
        .field("rolled_back", summary.rolled_back);
    if (summary.first_loss && summary.last_loss) {
        json.field("world_size", summary.gpus);
        json.key("loss")
            .begin_object()
            .field("first", *summary.first_loss)
            .field("last", *summary.last_loss)
            .end_object();
    }
    if (!summary.shadow.empty()) {
        json.key("shadow")
            .begin_object()
            .field("policy", summary.shadow)
            .field("differs", summary.shadow_differs)
            .field("regret_s", json_seconds(summary.shadow_regret_ns))
            .end_object();
    }
    json.field("complete", summary.complete)
        .field("gpus", summary.gpus)
        .field("layout", summary.layout)
        .field("wall_s", json_seconds(summary.wall_ns))
        .field("healthy_iteration_s", json_seconds(summary.healthy_iteration_ns))
        .field("iterations_completed", summary.iterations_completed)
        .field("iterations_lost", summary.iterations_lost)
        .field("model_tflops_per_gpu", summary.model_tflops_per_gpu)
        .key("recovery_s")
        .begin_object()
        .field("checkpoints", json_seconds(summary.checkpoint_ns))
        .field("losses", json_seconds(summary.loss_ns))
        .field("switches", json_seconds(summary.switch_ns))
        .field("repeated", json_seconds(summary.repeated_ns))
        .field("uncovered", json_seconds(summary.uncovered_ns))
        .end_object();
    write_slowest(json, summary);
    json.end_object();
}

}  // namespace

std::string report_json(const RunSummary& summary) {
    JsonText json;
    write_run(json, summary);
    return json.take() + "\n";
}

std::string repeats_json(const std::vector<RunSummary>& runs) {
    if (runs.empty()) throw std::invalid_argument("a report of no runs");
    JsonText json;
    json.begin_object().field("scenario", runs.front().scenario).field("policy", runs.front().policy);
    json.key("seeds").begin_array();
    for (const RunSummary& run : runs) json.value(run.seed);
    json.end_array().key("mean").begin_object();
    write_figures(json, "iterations", "",
                  [&](const Figure& figure) { json.value(estimate_figure(figure, runs).mean); });
    json.end_object().key("ci95").begin_object();
    write_figures(json, "iterations", "",
                  [&](const Figure& figure) { json.value(estimate_figure(figure, runs).half_width); });
    json.end_object().key("runs").begin_array();
    for (const RunSummary& run : runs) write_run(json, run);
    return json.end_array().end_object().take() + "\n";
}

std::string compare_json(const std::string& name_a, const RunSummary& a, const std::string& name_b,
                         const RunSummary& b) {
    JsonText json;
    json.begin_object().key("names").begin_array().value(name_a).value(name_b).end_array();
    json.key("a");
    write_run(json, a);
    json.key("b");
    write_run(json, b);
    json.key("difference").begin_object();
    write_figures(json, "iterations", "", [&](const Figure& figure) { json.value(figure_difference(figure, a, b)); });
    return json.end_object().end_object().take() + "\n";
}

}  // namespace headway::scenarios
