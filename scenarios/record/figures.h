#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/record/statistics.h"
#include "scenarios/record/summary.h"

/// The figures of a run that reports list, in the order they are listed, and how people read them.
namespace headway::scenarios {

enum class FigureUnit { kCount, kSeconds, kRate, kTflops, kFraction };

/// JSON: `key`, inside an object `group` where that is not empty.
struct Figure {
    std::string_view group;
    std::string_view key;
    std::string_view label;
    FigureUnit unit;
    double (*of)(const RunSummary&);
};

inline constexpr std::array kFigures = {
    Figure{"", "iterations", "iterations", FigureUnit::kCount,
           [](const RunSummary& s) { return double(s.iterations); }},
    Figure{"iteration_s", "mean", "iteration mean", FigureUnit::kSeconds,
           [](const RunSummary& s) { return s.iteration_mean_s; }},
    Figure{"iteration_s", "p50", "iteration p50", FigureUnit::kSeconds,
           [](const RunSummary& s) { return s.iteration_p50_s; }},
    Figure{"iteration_s", "p95", "iteration p95", FigureUnit::kSeconds,
           [](const RunSummary& s) { return s.iteration_p95_s; }},
    Figure{"", "tokens_per_s", "tokens/s", FigureUnit::kRate, [](const RunSummary& s) { return s.tokens_per_s; }},
    Figure{"", "tflops_per_gpu", "TFLOP/s per GPU", FigureUnit::kTflops,
           [](const RunSummary& s) { return s.tflops_per_gpu; }},
    Figure{"", "mfu", "MFU", FigureUnit::kFraction, [](const RunSummary& s) { return s.mfu; }},
    Figure{"", "goodput", "goodput", FigureUnit::kFraction, [](const RunSummary& s) { return s.goodput; }},
    Figure{"time_share", "compute", "compute", FigureUnit::kFraction,
           [](const RunSummary& s) { return s.time_share.compute; }},
    Figure{"time_share", "bubble", "bubble", FigureUnit::kFraction,
           [](const RunSummary& s) { return s.time_share.bubble; }},
    Figure{"time_share", "tensor", "tensor comm.", FigureUnit::kFraction,
           [](const RunSummary& s) { return s.time_share.tensor; }},
    Figure{"time_share", "pipeline", "pipeline comm.", FigureUnit::kFraction,
           [](const RunSummary& s) { return s.time_share.pipeline; }},
    Figure{"time_share", "data", "data comm.", FigureUnit::kFraction,
           [](const RunSummary& s) { return s.time_share.data; }},
    Figure{"time_share", "straggling", "straggling", FigureUnit::kFraction,
           [](const RunSummary& s) { return s.time_share.straggling; }},
    Figure{"time_share", "recovery", "recovery", FigureUnit::kFraction,
           [](const RunSummary& s) { return s.time_share.recovery; }},
    Figure{"", "decisions", "decisions", FigureUnit::kCount, [](const RunSummary& s) { return double(s.decisions); }},
    Figure{"", "switches", "switches", FigureUnit::kCount, [](const RunSummary& s) { return double(s.switches); }},
};

/// Of several runs. Throws std::invalid_argument for none.
Estimate estimate_figure(const Figure& figure, const std::vector<RunSummary>& runs);

/// (b - a) / a; for fractions b - a. Absent where a is 0 and b is not.
std::optional<double> figure_difference(const Figure& figure, const RunSummary& a, const RunSummary& b);

/// "23.4 s", "1,536", "33.4 %", ...
std::string figure_text(FigureUnit unit, double value);

/// "812 us", "43.1 ms", "23.4 s", "6 min 05 s", "4 h 12 min", "3 d 02 h"; "30 min" when it is exactly that.
std::string duration_text(std::int64_t ns);
/// "1,536"; rounds to whole numbers.
std::string count_text(double value);
/// "33.4 %"
std::string percent_text(double fraction);

/// Width on a terminal: code points of UTF-8 text.
std::size_t text_width(std::string_view text);
std::string pad_left(std::string_view text, std::size_t width);
/// Longer text is cut and ends with an ellipsis.
std::string pad_right(std::string_view text, std::size_t width);
/// Breaks at blanks, but not inside a duration, so that no line exceeds `width` where words allow it; every line begins
/// with `indent` blanks and ends with a newline.
std::string wrap_text(std::string_view text, std::size_t indent, std::size_t width);
/// `fraction` of `width` columns filled, in eighths of a column.
std::string bar_text(double fraction, std::size_t width);

}  // namespace headway::scenarios
