#pragma once

#include <string>

#include "scenarios/record/run_events.h"

namespace headway::scenarios {

/// What a decision's line leaves out because the lines before it say it: the plan, from the topology or the last
/// choice, and every column of measurements that did not change.
struct DecisionState {
    Plan plan;
    MeasuredColumns measured;
};

/// One JSON object without the line's end; `state` becomes that of the next line. Before the first it holds the initial
/// plan. A job of 1,024 GPUs takes about 50 kB a decision.
std::string decision_line(const DecisionEvent& event, DecisionState& state);

}  // namespace headway::scenarios
