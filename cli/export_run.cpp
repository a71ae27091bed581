#include <system_error>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/output_file.h"
#include "cli/standard_output.h"
#include "scenarios/language/config_error.h"
#include "scenarios/record/exports.h"

namespace headway::cli {

int export_run(const ExportArguments& arguments) {
    expect_readable(arguments.run, "a run record");
    std::error_code problem;
    std::filesystem::create_directories(arguments.csv, problem);
    if (problem || !std::filesystem::is_directory(arguments.csv, problem)) {
        throw scenarios::ConfigError("--csv " + arguments.csv.string() + ": is no folder and cannot be made one");
    }
    const scenarios::CsvExport written = scenarios::export_csv(arguments.run, arguments.csv);
    std::string text;
    for (const std::filesystem::path& file : written.files) text += file.string() + "\n";
    print(text);
    if (!written.problem.empty()) complain(written.problem);
    return kSucceeded;
}

}  // namespace headway::cli
