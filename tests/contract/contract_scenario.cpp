#include "tests/contract/contract_scenario.h"

#include "scenarios/language/read.h"
#include "scenarios/language/strategy.h"
#include "tests/paths.h"

namespace headway::tests {

scenarios::Scenario contract_scenario(const std::string& disturbances, const std::string& run) {
    const std::string yaml = R"(
name: contract
job:
  model: gpt3-125m
  precision: fp16
  global_batch: 16
  micro_batch: 1
  stack: megatron-lm-2021
  checkpoint: {interval: 1 s, detection: 1 s, restart: 2 s}
cluster:
  base: selene
  nodes: 2
  node: {gpus: 2, nics: 2}
  network: {nodes_per_rack: 1}
  facility: {node_repair: 30 s}
strategy: {tensor: 1, pipeline: 2, data: 2}
decision_interval: 5
telemetry_period: 1 s
disturbances: )" + disturbances +
                             "\nrun: " + run + "\n";
    const auto folder = source_directory() / "scenarios";
    return scenarios::parse_scenario(yaml, "contract.yaml", folder, {folder});
}

scenarios::Plan plan_on_one_node(const scenarios::Scenario& scenario) {
    scenarios::Strategy strategy = scenario.strategy;
    strategy.layout.data = 1;
    strategy.placement = {0, 1};
    strategy.micro_batches_per_replica = {};
    return scenarios::initial_plan(strategy, scenario.job, scenario.cluster);
}

scenarios::Scenario contract_scenario_with_loss() {
    return contract_scenario("[{name: node 1 is lost, start: 2500 ms, node_loss: {node: 1}}]", "{time: 60 s}");
}

}  // namespace headway::tests
