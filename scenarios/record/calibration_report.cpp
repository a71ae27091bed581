#include "scenarios/record/calibration_report.h"

#include <cstdio>

#include "scenarios/record/figures.h"
#include "scenarios/record/json_text.h"

namespace headway::scenarios {

namespace {

std::string rate_text(double value, double unit, const char* name) {
    char text[64];
    std::snprintf(text, sizeof text, "%.1f %s", value / unit, name);
    return text;
}

}  // namespace

std::string calibration_json(const CalibrationReport& report) {
    JsonText json;
    json.begin_object()
        .field("device", report.device)
        .field("peak_flops_per_s", report.peak_flops_per_second)
        .field("gemm_efficiency", report.gemm_efficiency)
        .field("memory_bytes_per_s", report.memory_bytes_per_second)
        .field("bus_bytes_per_s", report.bus_bytes_per_second)
        .key("fits")
        .begin_array();
    for (const CalibrationFigure& figure : report.figures) {
        json.begin_object()
            .field("what", figure.what)
            .field("timings", figure.timings)
            .field("mean_error", figure.mean_error)
            .field("worst_error", figure.worst_error)
            .end_object();
    }
    return json.end_array().field("files", report.files).end_object().take() + "\n";
}

std::string calibration_text(const CalibrationReport& report) {
    std::string text = report.device + ": " +
                       rate_text(report.peak_flops_per_second, 1e9, "GFLOP/s peak, GEMMs reach ") +
                       percent_text(report.gemm_efficiency) + " of it, memory " +
                       rate_text(report.memory_bytes_per_second, 1e9, "GB/s");
    if (report.bus_bytes_per_second > 0.0)
        text += ", between ranks " + rate_text(report.bus_bytes_per_second, 1e9, "GB/s");
    text += "\n\n  " + pad_right("what the fit gives back", 26) + "timings   mean error   worst\n";
    for (const CalibrationFigure& figure : report.figures) {
        text += "  " + pad_right(figure.what, 26) + pad_left(std::to_string(figure.timings), 7) +
                pad_left(percent_text(figure.mean_error), 13) + pad_left(percent_text(figure.worst_error), 8) + "\n";
    }
    text += "\nwritten:\n";
    for (const std::string& file : report.files) text += "  " + file + "\n";
    return text;
}

}  // namespace headway::scenarios
