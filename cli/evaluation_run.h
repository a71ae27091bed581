#pragma once

#include <cstdint>
#include <string>

#include "cli/evaluation_cases.h"
#include "policies/guardrails.h"

namespace headway::cli {

/// What one policy did in one scenario with one seed.
struct EvaluationFigures {
    double goodput = 0.0;
    double switches = 0.0;
    double decisions = 0.0;
    double lost_iterations = 0.0;
    double paused_s = 0.0;
    double reactions = 0.0;       ///< disturbances that a switch followed while they lasted
    double reaction_sum_s = 0.0;  ///< over these, from begin to switch
    double only_choice = 0.0;     ///< decisions with nothing but candidate 0
    double handed_over = 0.0;     ///< decisions that the guards' rule took
    double rolled_back = 0.0;     ///< decisions by which a switch was taken back
    double complete = 1.0;        ///< 0: interrupted
};

/// Runs a scenario under a policy on the simulator. Once a process: SimGrid has one engine. `seed` is added to the
/// scenario's.
EvaluationFigures run_evaluation(const EvaluationCase& one, const std::string& policy, std::uint64_t seed,
                                 bool longest_path, const policies::GuardOptions& guards);

/// To pass from a worker process to its parent. Never stored.
std::string evaluation_bytes(const EvaluationFigures& figures);
/// Throws std::runtime_error for bytes that `evaluation_bytes` did not make.
EvaluationFigures evaluation_from_bytes(const std::string& bytes);

}  // namespace headway::cli
