#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "policies/observation.h"
#include "policies/planning/candidate_generator.h"
#include "tests/sim/small_runs.h"

/// What the candidate generator offers over an episode in the simulator.
namespace headway::sim {
namespace {

using policies::Candidate;
using policies::Observation;
using Kind = Candidate::Kind;

scenarios::Scenario shipped(const std::string& name, const std::vector<scenarios::Override>& overrides = {}) {
    const auto root = ::headway::tests::source_directory() / "scenarios";
    return scenarios::read_scenario(root / name, {root}, overrides);
}

/// 32 GPUs of which all are alike; its layout is as fast as any.
scenarios::Scenario even_job(const std::string& disturbances, const std::string& sensors = "{}") {
    const std::string text = R"(
name: even
job: {model: gpt3-2.7b, precision: bf16, global_batch: 128, micro_batch: 1, stack: megatron-lm-2022}
cluster: {base: selene, nodes: 4}
strategy: {tensor: 1, pipeline: 4, data: 8, distributed_optimizer: true, adapt: {degrees: false}}
disturbances: )" + disturbances +
                             "\nsensors: " + sensors + "\nrun: {iterations: 100000}\n";
    const auto root = ::headway::tests::source_directory() / "scenarios";
    return scenarios::parse_scenario(text, "even.yaml", root, {root});
}

struct Step {
    Observation seen;
    std::vector<Candidate> candidates;
};

/// `intervals` of ten iterations under `plan_of` the step before: the initial plan, or what the caller chooses.
template <class Choose>
std::vector<Step> episode(SimulatedCluster& cluster, policies::CandidateGenerator& generator, int intervals,
                          std::uint64_t seed, Choose choose) {
    cluster.start_episode(seed);
    generator.start_episode();
    policies::ObservationBuilder builder;
    builder.start_episode();
    scenarios::Plan plan = cluster.facts().initial_plan;
    std::vector<Step> steps;
    for (int i = 0; i < intervals; ++i) {
        const policies::Measurements measured = cluster.run(plan, 10);
        Step step{builder.build(cluster.facts(), plan, measured, cluster.now()), {}};
        step.candidates = generator.propose(step.seen);
        const Candidate chosen = step.candidates[choose(step)];
        steps.push_back(std::move(step));
        if (chosen.kind == Kind::kWaitForReplacement) {
            plan = cluster.recover({policies::Recovery::Kind::kWaitForReplacement, {}}).plan;
        } else if (chosen.kind == Kind::kRestart) {
            plan = cluster.recover({policies::Recovery::Kind::kRestart, chosen.plan}).plan;
        } else if (chosen.kind != Kind::kKeep) {
            cluster.move_to(chosen.plan);
            plan = chosen.plan;
        }
    }
    return steps;
}

std::size_t choose_keep(const Step&) {
    return 0;
}
std::size_t choose_fastest(const Step& step) {
    std::size_t best = 0;
    for (std::size_t i = 0; i < step.candidates.size(); ++i)
        if (step.candidates[i].predicted.iteration < step.candidates[best].predicted.iteration) best = i;
    return best;
}
/// Most that any candidate of the steps promises over keeping the plan, as a share of the iteration.
double most_promised(const std::vector<Step>& steps) {
    double most = 0.0;
    for (const Step& step : steps)
        for (const Candidate& candidate : step.candidates)
            most = std::max(most, 1.0 - candidate.predicted.iteration / step.candidates.front().predicted.iteration);
    return most;
}

class NothingToGain : public testing::TestWithParam<const char*> {};

TEST_P(NothingToGain, NoCandidatePromisesTwoPercent) {
    for (const char* sensors : {"{}", "{time_noise: 0.03, temperature_noise: 1}"}) {
        const scenarios::Scenario scenario = even_job(GetParam(), sensors);
        SimulatedCluster cluster(scenario, nullptr, SimulationOptions::quick());
        policies::CandidateGenerator generator(cluster.facts());
        EXPECT_LT(most_promised(episode(cluster, generator, 40, 3, choose_keep)), 0.02) << GetParam() << sensors;
    }
}

INSTANTIATE_TEST_SUITE_P(Alike, NothingToGain,
                         testing::Values("[]", "[{start: 0 s, jitter: {spread: 0.02}}]",
                                         "[{start: 0 s, sequence_lengths: {spread: 0.3}}]",
                                         "[{start: 20 s, inlet: {temperature: 38 C}}]",
                                         "[{start: 20 s, speed_factor: {factor: 0.7}}]"));

TEST(GeneratorEpisodes, FindsASlowGpuBehindSensorNoise) {
    const scenarios::Scenario scenario =
        even_job("[{start: 30 s, speed_factor: {gpu: 9, factor: 0.6}}]", "{time_noise: 0.03}");
    SimulatedCluster cluster(scenario, nullptr, SimulationOptions::quick());
    policies::CandidateGenerator generator(cluster.facts());
    EXPECT_GT(most_promised(episode(cluster, generator, 40, 3, choose_keep)), 0.2);
}

TEST(GeneratorEpisodes, WaitsAreWhatRecoveryTakes) {
    const scenarios::Scenario scenario = even_job("[{start: 20 s, node_loss: {node: 2}}]");
    SimulatedCluster cluster(scenario, nullptr, SimulationOptions::quick());
    policies::CandidateGenerator generator(cluster.facts());
    cluster.start_episode(1);
    generator.start_episode();
    policies::ObservationBuilder builder;
    builder.start_episode();
    const scenarios::Plan plan = cluster.facts().initial_plan;
    for (int i = 0; i < 50; ++i) {
        const policies::Measurements measured = cluster.run(plan, 10);
        const auto candidates = generator.propose(builder.build(cluster.facts(), plan, measured, cluster.now()));
        if (!measured.loss) continue;
        ASSERT_EQ(candidates.front().kind, Kind::kWaitForReplacement);
        for (const Candidate& candidate : candidates) {
            const auto world = cluster.another();
            world->start_episode(1);
            policies::Measurements there;
            while (!there.loss) there = world->run(plan, 10);
            const bool waits = candidate.kind == Kind::kWaitForReplacement;
            const auto outcome = world->recover(
                {waits ? policies::Recovery::Kind::kWaitForReplacement : policies::Recovery::Kind::kRestart,
                 waits ? scenarios::Plan() : candidate.plan});
            EXPECT_NEAR(candidate.predicted.pause.s(), outcome.pause.s(), 0.02 * outcome.pause.s()) << candidate.why;
            const policies::Measurements after = world->run(outcome.plan, 1);
            EXPECT_NEAR(candidate.predicted.iteration / after.iterations.front(), 1.0, 0.03) << candidate.why;
        }
        EXPECT_GT(candidates.size(), 1u);
        return;
    }
    FAIL() << "nothing was lost";
}

TEST(GeneratorEpisodes, BringsARecordedJobWithinEightPercentOfHealthy) {
    // Job AR: a worker about 2.5 times slower; doing nothing costs a factor of 2.
    const scenarios::Scenario scenario = shipped("recorded-job-ar.yaml", {{"run.iterations", "1000"}});
    SimulatedCluster cluster(scenario, nullptr, SimulationOptions::quick());
    policies::CandidateGenerator generator(cluster.facts());
    const auto steps = episode(cluster, generator, 3, 1, choose_fastest);
    EXPECT_GT(steps.front().seen.iteration / cluster.healthy_iteration(), 1.9);
    EXPECT_LT(steps.back().seen.iteration / cluster.healthy_iteration(), 1.08);
}

TEST(GeneratorEpisodes, TrainsHalfAgainAsFastOnTwoGenerationsOfGpus) {
    const scenarios::Scenario scenario = shipped("heldout/a100-h800.yaml");
    SimulatedCluster cluster(scenario, nullptr, SimulationOptions::quick());
    policies::CandidateGenerator generator(cluster.facts());
    const auto steps = episode(cluster, generator, 3, 1, choose_fastest);
    EXPECT_GT(steps.front().seen.iteration / steps.back().seen.iteration, 1.5);
}

}  // namespace
}  // namespace headway::sim
