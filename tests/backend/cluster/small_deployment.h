#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/cluster/member.h"
#include "backend/cluster/real_cluster.h"
#include "scenarios/language/read.h"
#include "scenarios/language/scenario.h"
#include "scenarios/language/strategy.h"
#include "tests/backend/local_ranks.h"
#include "tests/paths.h"

/// A GPT of 30,000 parameters on four host processes, for tests of what deploys it.
namespace headway::backend {

/// `strategy`, `disturbances` and further sections as YAML.
inline scenarios::Scenario small_deployment(const std::string& strategy = "{data: 2, pipeline: 2}",
                                            const std::string& further = "") {
    const std::string yaml = R"(
name: small deployment
job:
  model: {layers: 4, hidden: 32, heads: 2, ffn: 64, vocab: 256, sequence_length: 16}
  precision: fp32
  global_batch: 16
  micro_batch: 1
  stack: headway-host
  checkpoint: {interval: 0 s}
  training: {learning_rate: 3e-3}
cluster:
  base: lab-4
  nodes: 2
  node: {gpu: paced-core, gpus: 2, nics: 2, fabric: host-loopback, network: host-loopback}
strategy: )" + strategy + R"(
run: {iterations: 1000}
decision_interval: 5
telemetry_period: 100 ms
)" + further;
    const auto folder = tests::source_directory() / "scenarios";
    return scenarios::parse_scenario(yaml, "small.yaml", folder, {folder});
}

inline scenarios::Plan initial_plan_of(const scenarios::Scenario& scenario) {
    return scenarios::initial_plan(scenario.strategy, scenario.job, scenario.cluster);
}

inline std::filesystem::path small_text() {
    return tests::source_directory() / "scenarios" / "data" / "persuasion.txt";
}

/// Runs `lead` on rank 0 with the cluster and lets the other ranks serve it. Results and errors by rank.
inline std::vector<RankOutcome> deploy_locally(const scenarios::Scenario& scenario,
                                               const std::function<std::string(RealCluster&)>& lead,
                                               DeploymentOptions options = {}, scenarios::RunSink* sink = nullptr,
                                               const LocalRanksOptions& ranks = {}) {
    if (options.data.empty()) options.data = small_text();
    return rank_outcomes(
        scenario.cluster.gpus(),
        [&](LocalRank& local) -> std::string {
            const scenarios::Plan plan = initial_plan_of(scenario);
            Member member(scenario, plan, options, local.control);
            if (local.rank > 0) {
                member.serve();
                return "served";
            }
            RealCluster cluster(scenario, plan, options, local.control, member, sink, true);
            cluster.start_episode(scenario.seed);
            const std::string result = lead(cluster);
            cluster.finish();
            return result;
        },
        ranks);
}

/// The same; what failed in any rank fails in the test. Returns what `lead` did.
inline std::string deployed(const scenarios::Scenario& scenario, const std::function<std::string(RealCluster&)>& lead,
                            const DeploymentOptions& options = {}) {
    const std::vector<RankOutcome> outcomes = deploy_locally(scenario, lead, options);
    for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
        EXPECT_EQ(outcomes[rank].signal, 0) << rank;
        EXPECT_EQ(outcomes[rank].error, "") << rank;
        for (const std::string& failure : outcomes[rank].failures) ADD_FAILURE() << "rank " << rank << ": " << failure;
    }
    return outcomes.front().result;
}

}  // namespace headway::backend
