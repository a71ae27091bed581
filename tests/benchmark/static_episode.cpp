#include "tests/benchmark/static_episode.h"

#include "policies/policy.h"
#include "scenarios/language/read.h"
#include "tests/paths.h"

namespace headway::benchmarks {

const char* const kMixedDisturbances =
    "[{start: 20 s, duration: 300 s, airflow: {gpu: 3, resistance_factor: 3}},"
    " {start: 60 s, duration: 200 s, speed_factor: {gpu: 17, factor: 0.6}},"
    " {start: 100 s, duration: 400 s, inlet: {rack: 1, temperature: 38 C}},"
    " {start: 150 s, duration: 300 s, link_bandwidth: {node_network: 5, factor: 0.3}},"
    " {start: 300 s, duration: 200 s, co_tenant: {node: 2, compute_share: 0.3, memory_share: 0.3}}]";

scenarios::Scenario sixty_four_gpus(const std::string& disturbances, const scenarios::Sensors& sensors) {
    const std::string text = R"(
name: steps
job: {model: gpt3-1.3b, precision: bf16, global_batch: 128, micro_batch: 1, stack: megatron-lm-2022}
cluster: {base: selene, nodes: 8}
strategy: {tensor: 2, pipeline: 4, data: 8}
disturbances: )" + disturbances +
                             "\nrun: {iterations: 2000}\n";
    const auto root = tests::source_directory() / "scenarios";
    scenarios::Scenario scenario = scenarios::parse_scenario(text, "steps.yaml", root, {root});
    scenario.sensors = sensors;
    return scenario;
}

StaticEpisode static_episode(const scenarios::Scenario& scenario, const sim::SimulationOptions& options) {
    sim::SimulatedCluster cluster(scenario, nullptr, options);
    policies::CandidateGenerator generator(cluster.facts());
    const auto policy = policies::make_policy("static");
    policies::EpisodeSink silent;
    const std::int64_t decisions = policies::run_episode(cluster, generator, *policy, {}, silent).decisions;
    return {decisions, cluster.now().s()};
}

}  // namespace headway::benchmarks
