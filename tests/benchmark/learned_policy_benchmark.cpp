#include <benchmark/benchmark.h>

#include "policies/learning/learned_policy.h"
#include "policies/learning/reduction.h"
#include "policies/learning/trainer.h"
#include "policies/training_cluster.h"

namespace headway::benchmarks {
namespace {

using policies::Candidate;
using policies::Duration;

/// One decision of the learned policy, features included: `gpus` GPUs of which one is slow, and 16 candidates.
void learned_decision(benchmark::State& state) {
    const int gpus = static_cast<int>(state.range(0));
    policies::ClusterFacts facts;
    scenarios::Node node;
    node.gpu.boost_clock = {1410.0};
    node.gpu.power_limit = {400.0};
    node.gpu.memory = scenarios::Bytes::gib(80);
    node.gpu.peak_half = {312e12};
    facts.cluster.node_groups = {{gpus / 8, node}};
    facts.healthy_iteration = Duration::seconds(5);
    scenarios::Plan& plan = facts.initial_plan;
    plan.layout.tensor = 8;
    plan.layout.pipeline = 4;
    plan.layout.data = gpus / 32;
    for (int rank = 0; rank < gpus; ++rank) plan.gpu_of_rank.push_back(rank);
    plan.layers_of_cell = scenarios::same_layers({12, 12, 12, 12}, plan.layout.data);
    plan.micro_batches_of_replica.assign(static_cast<std::size_t>(plan.layout.data), 16);

    policies::Observation observation;
    observation.plan = plan;
    observation.iteration = Duration::seconds(7);
    for (int rank = 0; rank < gpus; ++rank) {
        policies::RankObservation seen;
        seen.measured.gpu = rank;
        seen.measured.compute = Duration::seconds(4);
        seen.measured.sm_clock_mhz = 1400.0;
        if (rank == 3) seen.relative_score = 0.6;
        observation.ranks.push_back(seen);
    }
    std::vector<Candidate> candidates;
    for (int i = 0; i < 16; ++i) {
        Candidate candidate{i == 0 ? Candidate::Kind::kKeep : Candidate::Kind::kShareMicroBatches, plan, {}, ""};
        candidate.predicted.iteration = Duration::milliseconds(7000.0 - 50.0 * i);
        candidate.plan.micro_batches_of_replica[0] -= i % 8;
        candidates.push_back(candidate);
    }
    policies::NoReduction alone;
    policies::LearnedPolicy policy(policies::Trainer({}, alone).policy());
    policy.start_episode(facts, 1);
    for (auto _ : state) {
        observation.now += Duration::seconds(70);
        benchmark::DoNotOptimize(policy.decide(observation, candidates));
    }
}
BENCHMARK(learned_decision)->Arg(64)->Arg(1024)->Arg(16384)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace headway::benchmarks
