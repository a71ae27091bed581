#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "scenarios/language/disturbance.h"
#include "scenarios/language/job.h"

/// Recorded inputs of a scenario as CSV files: a line of column names, then numbers. Lines that begin with # are
/// comments. Every line ends with a line end, so that a file that was cut off is noticed. Errors are ConfigErrors that
/// begin with `where` (place and key that name the file) when the file cannot be read, and with FILE:LINE when a value
/// is wrong.
namespace headway::scenarios {

/// Columns time_s,factor: ascending times from 0, factors above 0 up to 10.
void read_csv_rows(const std::filesystem::path& file, const std::string& where, std::vector<SpeedPoint>& rows);

/// Columns replica,stage,forward_ms,backward_ms and optionally send_activation_ms,send_gradient_ms.
void read_csv_rows(const std::filesystem::path& file, const std::string& where, std::vector<MeasuredWorker>& rows);

}  // namespace headway::scenarios
