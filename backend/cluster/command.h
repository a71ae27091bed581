#pragma once

#include <cstdint>
#include <vector>

#include "backend/telemetry/iteration_measurement.h"
#include "scenarios/language/plan.h"

namespace headway::backend {

/// What process 0 tells the others to do, all at once.
struct Command {
    enum class Kind : std::uint8_t {
        kInitialise,  ///< state as at the beginning of training, or as in the newest checkpoint (`resume`)
        kBeginTime,   ///< the episode begins
        kStep,        ///< one iteration
        kMove,        ///< go on under `plan`
        kSave,        ///< write a checkpoint
        kWait,        ///< nothing yet: process 0 is there, and thinks
        kEnd,
    } kind = Kind::kEnd;
    std::uint64_t seed = 1;
    std::int64_t step = 0;       ///< optimizer step, counted from 0
    std::int64_t execution = 0;  ///< iterations of the episode so far
    bool resume = false;
    bool wait = false;  ///< kSave: until it is on storage
    scenarios::Plan plan;
};

/// What every process answers to a step.
struct StepReport {
    int rank = -1;  ///< in the plan
    bool asked_to_stop = false;
    std::int64_t operations = 0;  ///< at a declared pace
    std::int64_t late = 0;        ///< of them: took longer than declared
    RankStep step;
};

std::vector<char> packed(const Command& command);
Command unpacked_command(const std::vector<char>& bytes);
std::vector<char> packed(const StepReport& report);
StepReport unpacked_report(const std::vector<char>& bytes);

}  // namespace headway::backend
