#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/language/plan.h"
#include "scenarios/language/read.h"
#include "scenarios/language/scenario.h"

namespace headway::cli {

/// A scenario that policies are judged by.
struct EvaluationCase {
    scenarios::Scenario scenario;
    scenarios::Plan plan;
    std::string family;
};

/// Family of scenarios that stand in files of their own.
inline constexpr const char* kSingleScenarios = "single scenarios";

/// All scenarios of `on`: scenario files, set files (their first `limit` scenarios), and folders of both, whose files
/// are taken in order of their names. Throws ConfigError for what cannot be read or run, for folders without scenarios
/// and for two scenarios of one name.
std::vector<EvaluationCase> evaluation_cases(const std::vector<std::filesystem::path>& on,
                                             const scenarios::Catalogue& catalogue, std::optional<int> limit);

}  // namespace headway::cli
