#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/record/summary.h"

/// Reports of runs, for people (about 80 columns, UTF-8, ends with a newline) and as one JSON object on one line (with
/// newline).
namespace headway::scenarios {

std::string report_text(const RunSummary& summary);
/// {"scenario","policy","seed","iterations","iteration_s":{"mean","p50","p95"},"tokens_per_s","tflops_per_gpu","mfu","goodput",
/// "time_share":{...},"disturbances":[...],"decisions","switches", further fields...}
std::string report_json(const RunSummary& summary);

/// The same scenario run with several seeds.
/// Throws std::invalid_argument for none.
std::string repeats_text(const std::vector<RunSummary>& runs);
/// {"scenario","policy","seeds":[...],"mean":{...},"ci95":{...},"runs":[...]}; the figures of mean and ci95 have the
/// keys of `report_json`, ci95 is the half-width of the 95 % confidence interval of the mean (null for one run).
std::string repeats_json(const std::vector<RunSummary>& runs);

/// Two runs side by side; `name_a` and `name_b` head the columns.
std::string compare_text(const std::string& name_a, const RunSummary& a, const std::string& name_b,
                         const RunSummary& b);
/// {"a":{...},"b":{...},"difference":{...}}: difference is (b - a) / a, for shares b - a; null where a is 0.
std::string compare_json(const std::string& name_a, const RunSummary& a, const std::string& name_b,
                         const RunSummary& b);

}  // namespace headway::scenarios
