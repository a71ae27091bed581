#include "cli/against_simulation.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/output_file.h"
#include "cli/standard_output.h"
#include "scenarios/language/config_error.h"
#include "scenarios/record/report.h"
#include "scenarios/record/summary.h"

namespace headway::cli {

namespace {

scenarios::RunSummary summary_of_record(const std::filesystem::path& file) {
    expect_readable(file, "a run record");
    scenarios::RecordSummary read = scenarios::summarize_record(file);
    if (!read.problem.empty()) complain(read.problem);
    return read.summary;
}

}  // namespace

int compare(const CompareArguments& arguments) {
    if (arguments.b.has_value() == arguments.against_simulation)
        throw scenarios::ConfigError("compare: name a second record, or --against-simulation, and not both");
    if (arguments.against_simulation) {
        const scenarios::PredictionReport report = against_simulation(arguments.a);
        print(arguments.json ? scenarios::prediction_json(report) : scenarios::prediction_text(report));
        return kSucceeded;
    }
    const scenarios::RunSummary a = summary_of_record(arguments.a);
    const scenarios::RunSummary b = summary_of_record(*arguments.b);
    const std::string name_a = arguments.a.filename().string(), name_b = arguments.b->filename().string();
    print(arguments.json ? scenarios::compare_json(name_a, a, name_b, b)
                         : scenarios::compare_text(name_a, a, name_b, b));
    return kSucceeded;
}

}  // namespace headway::cli
