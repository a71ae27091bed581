#include "cli/simulated_run.h"

#include <algorithm>
#include <memory>

#include "cli/interrupt.h"
#include "cli/policy_run.h"
#include "sim/simulated_cluster.h"

namespace headway::cli {

policies::WorldFactory what_if_worlds(const scenarios::Scenario& scenario, bool heat_together) {
    // One world is made when the first is asked for; what it learns about plans serves all the others.
    auto first = std::make_shared<std::unique_ptr<sim::SimulatedCluster>>();
    return [scenario, first, heat_together]() -> std::unique_ptr<policies::TrainingCluster> {
        if (!*first) {
            sim::SimulationOptions options;
            options.path = sim::Path::kLongestPath;
            options.heat_together = heat_together;
            *first = std::make_unique<sim::SimulatedCluster>(scenario, nullptr, options);
        }
        return (*first)->another();
    };
}

policies::GuardOptions guards_without(const std::vector<std::string>& off) {
    const auto on = [&](const char* guard) { return std::find(off.begin(), off.end(), guard) == off.end(); };
    policies::GuardOptions guards;
    guards.out_of_distribution = on("ood");
    guards.rollback = on("rollback");
    return guards;
}

bool run_simulation(const scenarios::Scenario& scenario, const scenarios::Plan& plan, const Oversight& oversight,
                    bool operations, scenarios::RunSink& sink) {
    catch_interrupts();
    PolicyRun run(scenario, oversight, scenario.run.time ? 0 : scenario.run.iterations);
    sim::SimulationOptions options;
    options.operations = operations;
    sim::SimulatedCluster cluster(scenario, &sink, options);
    catch_interrupts();
    const policies::EpisodeSummary done = run.run(cluster, plan, sink);
    sink.end(run_footer(done, cluster.gpu_summaries()));
    run.keep_what_was_learned();
    return done.complete;
}

}  // namespace headway::cli
