#include "cli/evaluation_cases.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <system_error>

#include "cli/output_file.h"
#include "cli/scenario_check.h"
#include "cli/wildcards.h"
#include "scenarios/language/scenario_set.h"
#include "scenarios/sampling/draw_scenario.h"

namespace headway::cli {

namespace fs = std::filesystem;

namespace {

std::vector<fs::path> scenario_files(const std::vector<fs::path>& on) {
    std::vector<fs::path> files;
    for (const fs::path& path : on) {
        std::error_code ignored;
        if (!fs::is_directory(path, ignored)) {
            expect_readable(path, "a scenario or a set of scenarios");
            files.push_back(path);
            continue;
        }
        std::vector<fs::path> inside;
        for (const auto& entry : fs::directory_iterator(path))
            if (entry.is_regular_file() && entry.path().extension() == ".yaml") inside.push_back(entry.path());
        if (inside.empty()) throw scenarios::ConfigError(path.string() + ": no scenarios (*.yaml) in this folder");
        std::sort(inside.begin(), inside.end());
        files.insert(files.end(), inside.begin(), inside.end());
    }
    return files;
}

EvaluationCase single_case(const fs::path& file, const scenarios::Catalogue& catalogue) {
    scenarios::KeyPlaces places;
    EvaluationCase single;
    single.scenario = scenarios::read_scenario(file, catalogue, {}, &places);
    if (!resolve_wildcards(single.scenario, places))
        throw std::runtime_error(file.string() + ": interrupted while the planner chose its layout");
    single.plan = plan_that_fits(single.scenario, places);
    single.family = kSingleScenarios;
    return single;
}

}  // namespace

std::vector<EvaluationCase> evaluation_cases(const std::vector<fs::path>& on, const scenarios::Catalogue& catalogue,
                                             std::optional<int> limit) {
    std::vector<EvaluationCase> cases;
    for (const fs::path& file : scenario_files(on)) {
        std::ifstream stream(file, std::ios::binary);
        const std::string text{std::istreambuf_iterator<char>(stream), {}};
        if (!scenarios::is_scenario_set(text, file.string())) {
            cases.push_back(single_case(file, catalogue));
            continue;
        }
        const scenarios::ScenarioSet set = scenarios::read_scenario_set(file, catalogue);
        const int count = limit ? std::min(*limit, set.count) : set.count;
        for (int index = 0; index < count; ++index) {
            scenarios::DrawnScenario drawn = scenarios::draw_scenario(set, static_cast<std::uint64_t>(index));
            cases.push_back({std::move(drawn.scenario), std::move(drawn.plan), std::move(drawn.family)});
        }
    }
    std::set<std::string> names;
    for (const EvaluationCase& one : cases) {
        if (!names.insert(one.scenario.name).second)
            throw scenarios::ConfigError("two scenarios are called '" + one.scenario.name + "'");
    }
    return cases;
}

}  // namespace headway::cli
