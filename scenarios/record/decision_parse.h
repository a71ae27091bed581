#pragma once

#include "scenarios/record/decision_lines.h"
#include "scenarios/record/json_fields.h"

namespace headway::scenarios {

/// The inverse of `write_plan` for a cluster of `gpus`. Throws RecordLineError.
Plan parse_plan(const Json& json, std::int64_t gpus);

/// The inverse of `decision_line`. Throws RecordLineError.
DecisionEvent parse_decision(const Json& json, std::int64_t gpus, DecisionState& state);

}  // namespace headway::scenarios
