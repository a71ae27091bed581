#include "scenarios/record/prediction_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "scenarios/record/figures.h"
#include "scenarios/record/json_text.h"

namespace headway::scenarios {

namespace {

std::string signed_percent(double fraction) {
    char text[32];
    std::snprintf(text, sizeof text, "%+.1f %%", 100.0 * fraction);
    return text;
}

std::string joined_names(const std::vector<std::string>& names) {
    if (names.empty()) return "nothing disturbed";
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
}

}  // namespace

double PredictionReport::mean_error() const {
    double sum = 0.0;
    std::int64_t count = 0;
    for (const PredictedSegment& segment : segments) {
        if (segment.simulated_ns == 0) continue;
        sum += std::abs(segment.error()) * static_cast<double>(segment.iterations);
        count += segment.iterations;
    }
    return count == 0 ? 0.0 : sum / static_cast<double>(count);
}

double PredictionReport::worst_error() const {
    double worst = 0.0;
    for (const PredictedSegment& segment : segments) worst = std::max(worst, std::abs(segment.error()));
    return worst;
}

std::string prediction_json(const PredictionReport& report) {
    JsonText json;
    json.begin_object()
        .field("run", report.run)
        .field("scenario", report.scenario)
        .field("iterations", report.iterations)
        .field("changing_iterations", report.changing)
        .field("mean_error", report.mean_error())
        .field("worst_error", report.worst_error())
        .key("iterations_s")
        .begin_object()
        .field("measured", static_cast<double>(report.measured_ns) * 1e-9)
        .field("simulated", static_cast<double>(report.simulated_ns) * 1e-9)
        .end_object()
        .key("segments")
        .begin_array();
    for (const PredictedSegment& segment : report.segments) {
        json.begin_object()
            .field("plan", segment.plan)
            .field("disturbances", segment.disturbances)
            .field("iterations", segment.iterations)
            .field("measured_ns", segment.measured_ns)
            .field("simulated_ns", segment.simulated_ns)
            .field("error", segment.error())
            .end_object();
    }
    json.end_array().key("pauses").begin_array();
    for (const PredictedPause& pause : report.pauses) {
        json.begin_object()
            .field("what", pause.what)
            .field("measured_ns", pause.measured_ns)
            .field("simulated_ns", pause.simulated_ns)
            .end_object();
    }
    return json.end_array().end_object().take() + "\n";
}

std::string prediction_text(const PredictionReport& report) {
    std::string text = report.scenario + ": " + report.run + " against its simulation\n" +
                       count_text(static_cast<double>(report.iterations)) + " iterations, measured " +
                       duration_text(report.measured_ns) + ", simulated " + duration_text(report.simulated_ns) + "\n\n";
    text += "  iterations    measured   simulated     error\n";
    for (const PredictedSegment& segment : report.segments) {
        text += "  " + pad_left(count_text(static_cast<double>(segment.iterations)), 10) + "  " +
                pad_left(duration_text(segment.measured_ns), 10) + "  " +
                pad_left(segment.simulated_ns == 0 ? "never" : duration_text(segment.simulated_ns), 10) + "  " +
                pad_left(segment.simulated_ns == 0 ? "" : signed_percent(segment.error()), 8) + "   " + segment.plan +
                "; " + joined_names(segment.disturbances) + "\n";
    }
    if (report.changing > 0)
        text += "  " + pad_left(count_text(static_cast<double>(report.changing)), 10) +
                "  left out: a disturbance began or ended in them\n";
    text += "\nerror of the iteration time: mean " + percent_text(report.mean_error()) + ", worst " +
            percent_text(report.worst_error()) + "\n";
    for (const PredictedPause& pause : report.pauses)
        text += "pause: " + pause.what + ": measured " + duration_text(pause.measured_ns) + ", simulated " +
                duration_text(pause.simulated_ns) + "\n";
    return text;
}

}  // namespace headway::scenarios
