#pragma once

#include <string>
#include <vector>

#include "scenarios/record/evaluation_report.h"
#include "scenarios/record/learning_events.h"

namespace headway::cli {

/// Fills `policies` and `pairs` of a report from its `scenarios`: every scenario has one run a policy, in the order of
/// `names`, static first. Recovered shares need a policy called "oracle". Deterministic.
void sum_up(const std::vector<std::string>& names, scenarios::EvaluationReport& report);

/// A summed-up report as lines of a record, policy by policy: the mean over all scenarios, over each family, and each
/// scenario.
std::vector<scenarios::EvaluationEvent> evaluation_events(const scenarios::EvaluationReport& report);

}  // namespace headway::cli
