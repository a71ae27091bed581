#include <exception>
#include <stdexcept>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/standard_output.h"
#include "scenarios/language/config_error.h"

namespace headway::cli {

namespace {

struct CommandRunner {
    const std::string& version;
    int operator()(const Finished& finished) const { return finished.exit_code; }
    int operator()(const ReplayArguments& arguments) const { return replay(arguments, version); }
    int operator()(const EvaluateArguments& arguments) const { return evaluate(arguments, version); }
    int operator()(const TrainArguments& arguments) const { return train(arguments, version); }
    int operator()(const DeployArguments& arguments) const { return deploy(arguments, version); }
    int operator()(const CalibrateArguments& arguments) const { return calibrate(arguments); }
    int operator()(const CheckArguments& arguments) const { return check(arguments); }
    int operator()(const PlanArguments& arguments) const { return plan(arguments); }
    int operator()(const ListArguments& arguments) const { return list(arguments); }
    int operator()(const ValidateArguments& arguments) const { return validate(arguments); }
    int operator()(const CompareArguments& arguments) const { return compare(arguments); }
    int operator()(const ExportArguments& arguments) const { return export_run(arguments); }
    int operator()(const ExportWeightsArguments& arguments) const { return export_weights(arguments); }
};

}  // namespace

int run_command(const Command& command, const std::string& version) {
    try {
        return std::visit(CommandRunner{version}, command);
    } catch (const scenarios::ConfigError& error) {
        complain(error.what());
        return kBadInput;
    } catch (const std::exception& error) {
        complain(error.what());
        return kFailed;
    }
}

}  // namespace headway::cli
