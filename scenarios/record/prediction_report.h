#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// How well a simulation predicted a run that was made: `headway compare RUN --against-simulation`.
namespace headway::scenarios {

/// All iterations of the run with one plan and one set of disturbances at work from their begin to their end.
struct PredictedSegment {
    std::string plan;                       ///< layout and what differs from the plan before, for people
    std::vector<std::string> disturbances;  ///< names of those at work
    std::int64_t iterations = 0;            ///< of the run
    std::int64_t measured_ns = 0;           ///< mean of an iteration
    std::int64_t simulated_ns = 0;          ///< mean of the same in the simulation; 0: there was none
    /// Simulated over measured - 1; 0 where nothing was simulated.
    double error() const {
        if (measured_ns == 0 || simulated_ns == 0) return 0.0;
        return static_cast<double>(simulated_ns) / static_cast<double>(measured_ns) - 1.0;
    }
};

struct PredictedPause {
    std::string what;
    std::int64_t measured_ns = 0;
    std::int64_t simulated_ns = 0;
};

struct PredictionReport {
    std::string run;  ///< file
    std::string scenario;
    std::int64_t iterations = 0;
    std::int64_t changing = 0;               ///< iterations in which a disturbance began or ended: in no segment
    std::int64_t measured_ns = 0;            ///< sum over the iterations
    std::int64_t simulated_ns = 0;           ///< of as many
    std::vector<PredictedSegment> segments;  ///< in order of their first iteration
    std::vector<PredictedPause> pauses;      ///< switches, in order

    /// Mean of |error| over the segments, each counted by its iterations.
    double mean_error() const;
    double worst_error() const;
};

std::string prediction_json(const PredictionReport& report);
std::string prediction_text(const PredictionReport& report);

}  // namespace headway::scenarios
