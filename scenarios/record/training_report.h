#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// What `headway train` says at its end.
namespace headway::scenarios {

struct TrainedSeed {
    std::uint64_t seed = 1;
    bool complete = false;  ///< all planned updates were made
    std::int64_t updates = 0;
    std::string policy;    ///< file; empty: nothing was validated yet
    double score = 0.0;    ///< what the best policy is chosen by; only comparable within a report
    double goodput = 0.0;  ///< of the best policy, mean over the validation scenarios; as are the following
    double static_goodput = 0.0;
    double rule_goodput = 0.0;
    std::optional<double> teacher_goodput;
};

struct TrainingReport {
    std::string curriculum;
    std::int64_t planned = 0;  ///< updates
    std::string policy;        ///< file with the best of all seeds; empty: none yet
    std::vector<TrainedSeed> seeds;
};

/// {"policy","curriculum","planned","seeds":[{"seed","complete","updates","policy","goodput","static","rule",
/// "teacher"}]} on one line.
std::string training_json(const TrainingReport& report);
std::string training_text(const TrainingReport& report);

}  // namespace headway::scenarios
