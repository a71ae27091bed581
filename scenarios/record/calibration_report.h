#pragma once

#include <string>
#include <vector>

/// What `headway calibrate` measured and how well the fitted constants give it back.
namespace headway::scenarios {

/// |predicted / measured - 1| over the timings of one kind.
struct CalibrationFigure {
    std::string what;
    int timings = 0;
    double mean_error = 0.0;
    double worst_error = 0.0;
};

struct CalibrationReport {
    std::string device;
    double peak_flops_per_second = 0.0;
    double gemm_efficiency = 0.0;
    double memory_bytes_per_second = 0.0;
    double bus_bytes_per_second = 0.0;  ///< 0: one rank
    std::vector<CalibrationFigure> figures;
    std::vector<std::string> files;  ///< catalogue entries that were written
};

std::string calibration_json(const CalibrationReport& report);
std::string calibration_text(const CalibrationReport& report);

}  // namespace headway::scenarios
