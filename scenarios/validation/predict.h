#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/language/read.h"
#include "scenarios/record/validation_report.h"
#include "scenarios/validation/measured_table.h"
#include "scenarios/validation/statistics.h"

/// Predictions for tables of measurements: each row becomes a job on a cluster
/// under a plan, `scenarios/costs` says what its pieces cost, and the
/// contention-free evaluator puts them together.
namespace headway::scenarios {

struct PredictionSettings {
    Catalogue catalogue;
    std::optional<std::string> stack;  ///< for all rows, instead of what their software names
};

/// A predicted table: the figures that go into the JSON report, and what people want to know besides.
struct TablePrediction {
    ValidationTable figures;
    std::string title;
    std::string quantity;  ///< what the rows measure, with its unit: "iteration s"
};

/// Predicts every row. A row that cannot be expressed has no prediction and says why.
///
/// headway-slow-links/1: predicted iteration with the delays over the predicted healthy one (the measured healthy time
/// is not used), both from the first forward to the last backward, as the source measured them.
/// headway-recorded-jobs/1: the medians are the operation times; the rest of the step is, per stage, the longest median
/// over its replicas. headway-layer-times/1: one more layer on a stage, so that nothing but the layer is counted; two
/// rows a case, forward and backward.
TablePrediction predict_table(const MeasuredTable& table, const PredictionSettings& settings);

/// Report for people: about 80 columns, ends with a newline. `every_row`: false
/// prints the figures of each table only.
std::string predictions_text(const std::vector<TablePrediction>& tables, bool every_row);

/// The JSON report's content.
ValidationReport validation_report(const std::vector<TablePrediction>& tables);

}  // namespace headway::scenarios
