#include "tests/contract/implementations.h"

#include "sim/simulated_cluster.h"
#include "tests/contract/deployed_cluster.h"
#include "tests/contract/scripted_cluster.h"

namespace headway::tests {

std::vector<Implementation> implementations() {
    return {
        {"scripted",
         [](const scenarios::Scenario& scenario) -> std::unique_ptr<policies::TrainingCluster> {
             return std::make_unique<ScriptedCluster>(scenario);
         }},
        {"simulated",
         [](const scenarios::Scenario& scenario) -> std::unique_ptr<policies::TrainingCluster> {
             return std::make_unique<sim::SimulatedCluster>(scenario, nullptr);
         },
         false},
        {"deployed",
         [](const scenarios::Scenario& scenario) -> std::unique_ptr<policies::TrainingCluster> {
             return std::make_unique<DeployedCluster>(scenario);
         },
         true, true, "recovery while the job runs is not built yet: a lost process ends a deployment"},
        {"simulated_quickly",
         [](const scenarios::Scenario& scenario) -> std::unique_ptr<policies::TrainingCluster> {
             return std::make_unique<sim::SimulatedCluster>(scenario, nullptr, sim::SimulationOptions::quick());
         }},
    };
}

}  // namespace headway::tests
