#include "cli/catalogue_choice.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/scenario_check.h"
#include "cli/standard_output.h"
#include "cli/wildcards.h"
#include "scenarios/language/read.h"
#include "sim/simulated_cluster.h"

namespace headway::cli {

int check(const CheckArguments& arguments) {
    scenarios::KeyPlaces places;
    scenarios::Scenario scenario =
        scenarios::read_scenario(arguments.scenario, chosen_catalogue(arguments), arguments.overrides, &places);
    expect_policy(scenario.policy, places);
    if (!resolve_wildcards(scenario, places)) return kInterrupted;
    const scenarios::Plan plan = plan_that_fits(scenario, places);
    sim::SimulatedCluster(scenario, nullptr,
                          sim::SimulationOptions::quick());  // refuses air that is too warm for the job
    std::string text = "# " + scenarios::describe(plan.layout) + " on " + std::to_string(plan.layout.world_size()) +
                       " GPUs; memory of the fullest rank of each stage:\n";
    for (const std::string& line : memory_lines(scenario, plan)) text += "#   " + line + "\n";
    print(text + scenarios::write_scenario(scenario));
    return kSucceeded;
}

}  // namespace headway::cli
