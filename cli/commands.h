#pragma once

#include <string>

#include "cli/arguments.h"

/// The commands. Each prints to standard output, messages for people to standard error, and returns an exit code.
/// Bad input is a scenarios::ConfigError or std::invalid_argument, a failed run any other exception; `run_command`
/// turns them into messages.
namespace headway::cli {

int replay(const ReplayArguments& arguments, const std::string& version);
int evaluate(const EvaluateArguments& arguments, const std::string& version);
int train(const TrainArguments& arguments, const std::string& version);
int deploy(const DeployArguments& arguments, const std::string& version);
int calibrate(const CalibrateArguments& arguments);
int check(const CheckArguments& arguments);
int plan(const PlanArguments& arguments);
int list(const ListArguments& arguments);
int validate(const ValidateArguments& arguments);
int compare(const CompareArguments& arguments);
int export_run(const ExportArguments& arguments);
int export_weights(const ExportWeightsArguments& arguments);

int run_command(const Command& command, const std::string& version);

}  // namespace headway::cli
