#pragma once

#include <string>
#include <vector>

#include "scenarios/record/evaluation_report.h"

namespace headway::cli {

/// Fills `policies` and `pairs` of a report from its `scenarios`: every scenario has one run a policy, in the order of
/// `names`, static first. Recovered shares need a policy called "oracle". Deterministic.
void sum_up(const std::vector<std::string>& names, scenarios::EvaluationReport& report);

}  // namespace headway::cli
