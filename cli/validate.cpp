#include <algorithm>
#include <fstream>
#include <string>
#include <system_error>

#include "cli/catalogue_choice.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/standard_output.h"
#include "scenarios/language/config_error.h"
#include "scenarios/validation/predict.h"

namespace headway::cli {

namespace {

/// Whether a YAML file says at its top level that it is a table of some format.
bool states_a_format(const std::filesystem::path& file) {
    std::ifstream stream(file);
    for (std::string line; std::getline(stream, line);) {
        if (line.rfind("format:", 0) == 0) return true;
    }
    return false;
}

/// All tables below a folder, in order of their paths. Other YAML files of the folder are named and left out.
std::vector<std::filesystem::path> tables_in(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
        if (entry.is_regular_file() && entry.path().extension() == ".yaml") found.push_back(entry.path());
    }
    std::sort(found.begin(), found.end());
    std::erase_if(found, [](const std::filesystem::path& file) {
        if (states_a_format(file)) return false;
        complain(file.string() + ": no table (it states no format), left out");
        return true;
    });
    if (found.empty()) throw scenarios::ConfigError(folder.string() + ": no tables (*.yaml) in this folder");
    return found;
}

std::vector<std::filesystem::path> chosen_tables(const ValidateArguments& arguments,
                                                 const scenarios::Catalogue& catalogue) {
    std::vector<std::filesystem::path> asked = arguments.tables;
    if (asked.empty()) asked.push_back(catalogue.directory / "measured");
    std::vector<std::filesystem::path> tables;
    for (const std::filesystem::path& path : asked) {
        std::error_code ignored;
        if (!std::filesystem::is_directory(path, ignored)) {
            tables.push_back(path);
            continue;
        }
        for (std::filesystem::path& table : tables_in(path)) tables.push_back(std::move(table));
    }
    return tables;
}

}  // namespace

int validate(const ValidateArguments& arguments) {
    const scenarios::PredictionSettings settings{chosen_catalogue(arguments), arguments.stack};
    if (settings.stack) scenarios::read_stack(settings.catalogue, *settings.stack);  // says at once when there is none
    // All tables are read before any is predicted: a mistake in the last shows before the first is printed.
    std::vector<scenarios::MeasuredTable> tables;
    for (const std::filesystem::path& file : chosen_tables(arguments, settings.catalogue)) {
        tables.push_back(scenarios::read_measured_table(file));
    }
    std::vector<scenarios::TablePrediction> predictions;
    for (const scenarios::MeasuredTable& table : tables) {
        predictions.push_back(scenarios::predict_table(table, settings));
    }
    print(arguments.json ? scenarios::validation_json(scenarios::validation_report(predictions))
                         : scenarios::predictions_text(predictions, !arguments.summary));
    return kSucceeded;
}

}  // namespace headway::cli
