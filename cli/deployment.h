#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "scenarios/language/plan.h"
#include "scenarios/language/scenario.h"

namespace headway::cli {

/// A deployment whose input has been read and checked.
struct Deployment {
    scenarios::Scenario scenario;
    scenarios::Plan plan;
    std::filesystem::path data;  ///< absolute, as are the folders
    std::optional<std::filesystem::path> checkpoints;
    std::optional<std::filesystem::path> weights;
};

/// Reads and checks everything, so that a run that starts has no mistakes left in its input: the scenario, the plan and
/// its memory, what the backend cannot do, policy, data, checkpoints. `local`: all processes will run on this machine,
/// whose memory has to do. Throws ConfigError. Nothing when Ctrl-C ended the search for a plan.
std::optional<Deployment> prepare_deployment(const DeployArguments& arguments, bool local);

}  // namespace headway::cli
