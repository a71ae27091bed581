#pragma once

#include <filesystem>

#include "scenarios/record/prediction_report.h"

namespace headway::cli {

/// Simulates the scenario of a recorded run under the plans that the run had, from iteration to iteration, and holds
/// the iteration times against each other. Iterations are matched by plan and disturbances at work, so that clocks that
/// drift apart do not matter. A run that lost a part is compared up to there. Throws ConfigError for a file that is no
/// record of a run, or one without iterations.
scenarios::PredictionReport against_simulation(const std::filesystem::path& record);

}  // namespace headway::cli
