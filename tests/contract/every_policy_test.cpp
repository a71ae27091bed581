#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "policies/episode.h"
#include "policies/policy.h"
#include "scenarios/record/run_header.h"
#include "scenarios/record/run_reader.h"
#include "scenarios/record/run_writer.h"
#include "sim/simulated_cluster.h"
#include "tests/contract/contract_scenario.h"
#include "tests/contract/implementations.h"
#include "tests/scenarios/record/small_run.h"

/// What every registered policy promises (policies/policy.h), over every cluster that may live beside its what-if
/// worlds.
namespace headway::tests {
namespace {

using policies::Candidate;
using policies::Decision;
using policies::Duration;
using policies::EpisodeSummary;

struct PolicyOnCluster {
    policies::PolicyEntry policy;
    Implementation cluster;
};

/// Policies with all that can go wrong in the episode: a slow GPU, noise, a lost node.
scenarios::Scenario eventful(std::uint64_t seed = 1) {
    scenarios::Scenario scenario = contract_scenario(
        "[{start: 1 s, duration: 20 s, speed_factor: {gpu: 2, factor: 0.5}},"
        " {start: 0 s, jitter: {spread: 0.02}},"
        " {start: 12 s, node_loss: {node: 1}}]",
        "{time: 60 s}");
    scenario.seed = seed;
    return scenario;
}

class Recorded final : public policies::EpisodeSink {
  public:
    bool decided(const Decision& decision) override {
        EXPECT_LT(decision.chosen.candidate, decision.candidates.size());
        decisions.push_back(decision);
        return true;
    }
    std::vector<Decision> decisions;
};

class EveryPolicy : public ::testing::TestWithParam<PolicyOnCluster> {
  protected:
    static policies::EpisodeOptions options_of(const scenarios::Scenario& scenario) {
        policies::EpisodeOptions options;
        options.decision_interval = scenario.decision_interval;
        options.max_iterations = scenario.run.time ? 0 : scenario.run.iterations;
        options.seed = scenario.seed;
        return options;
    }
    static std::unique_ptr<policies::Policy> make(const scenarios::Scenario& scenario) {
        const auto worlds = [scenario] { return GetParam().cluster.make(scenario); };
        return policies::make_policy(GetParam().policy.name, {worlds, options_of(scenario)});
    }
    static EpisodeSummary play(const scenarios::Scenario& scenario, policies::Policy& policy, Recorded& recorded) {
        const auto cluster = GetParam().cluster.make(scenario);
        policies::CandidateGenerator generator(cluster->facts());
        return policies::run_episode(*cluster, generator, policy, options_of(scenario), recorded);
    }
};

void expect_same_decisions(const std::vector<Decision>& a, const std::vector<Decision>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
        SCOPED_TRACE(i);
        EXPECT_EQ(a[i].chosen.candidate, b[i].chosen.candidate);
        EXPECT_EQ(a[i].observation.now, b[i].observation.now);
        EXPECT_EQ(a[i].observation.plan, b[i].observation.plan);
        EXPECT_EQ(a[i].candidates.size(), b[i].candidates.size());
    }
}

TEST_P(EveryPolicy, CarriesAnEpisodeThroughALossToItsEnd) {
    const scenarios::Scenario scenario = eventful();
    Recorded recorded;
    const EpisodeSummary summary = play(scenario, *make(scenario), recorded);
    EXPECT_TRUE(summary.complete);
    EXPECT_GE(summary.wall, Duration::seconds(60));
    EXPECT_GT(summary.iterations, 20);
    EXPECT_GT(recorded.decisions.size(), 3u);
}

TEST_P(EveryPolicy, DecidesTheSameInEqualEpisodes) {
    const scenarios::Scenario scenario = eventful();
    Recorded first, second, again;
    const auto policy = make(scenario);
    play(scenario, *policy, first);
    play(scenario, *make(scenario), second);
    expect_same_decisions(first.decisions, second.decisions);
    // What it remembers of an episode is gone with it.
    play(scenario, *policy, again);
    expect_same_decisions(first.decisions, again.decisions);
}

TEST_P(EveryPolicy, KeepsWhenNothingElseIsOffered) {
    const scenarios::Scenario scenario = eventful();
    const auto cluster = GetParam().cluster.make(scenario);
    const auto policy = make(scenario);
    policy->start_episode(cluster->facts(), 1);
    policies::Observation observation;
    observation.plan = cluster->facts().initial_plan;
    observation.iteration = Duration::seconds(1);
    for (int i = 1; i < 30; ++i) {
        observation.now = Duration::seconds(i);
        Candidate keep{Candidate::Kind::kKeep, observation.plan, {}, "keep"};
        keep.predicted.iteration = observation.iteration;
        EXPECT_EQ(policy->decide(observation, {keep}).candidate, 0u);
        keep.kind = Candidate::Kind::kWaitForReplacement;
        EXPECT_EQ(policy->decide(observation, {keep}).candidate, 0u);
    }
}

/// Written to a file by the run, read back, and decided again by a policy that has nothing but the record.
TEST_P(EveryPolicy, DecidesTheSameFromARecordOfWhatItWasTold) {
    const scenarios::Scenario scenario = eventful();
    Recorded recorded;
    play(scenario, *make(scenario), recorded);

    const ScratchFolder folder("record-of-policy");
    const auto cluster = GetParam().cluster.make(scenario);
    const policies::ClusterFacts& facts = cluster->facts();
    {
        scenarios::RecordWriter writer(folder / "a.run.jsonl", {scenarios::RecordLevel::kDecisions, {}});
        scenarios::RunHeader header = small_header();
        header.node_groups = {{scenario.cluster.nodes(), 2, "A"}};
        header.plan = facts.initial_plan;
        writer.begin(header);
        for (const Decision& decision : recorded.decisions) writer.decision(policies::decision_event(decision));
        writer.end({});
    }
    EventLog read;
    ASSERT_EQ(scenarios::read_record(folder / "a.run.jsonl", read).problem, "");
    ASSERT_EQ(read.decisions.size(), recorded.decisions.size());

    const auto fresh = make(scenario);
    fresh->start_episode(facts, scenario.seed);
    policies::CandidateGenerator generator(facts);
    generator.start_episode();
    policies::ObservationBuilder builder;
    builder.start_episode();
    for (std::size_t i = 0; i < read.decisions.size(); ++i) {
        SCOPED_TRACE(i);
        const scenarios::DecisionEvent& event = read.decisions[i];
        const policies::Observation seen =
            builder.build(facts, event.plan, policies::measurements_of(event), Duration::nanoseconds(event.time_ns));
        const auto candidates = generator.propose(seen, fresh->further_plans());
        ASSERT_EQ(candidates.size(), event.candidates.size());
        for (std::size_t c = 0; c < candidates.size(); ++c) {
            EXPECT_EQ(candidates[c].predicted, recorded.decisions[i].candidates[c].predicted) << c;
        }
        const policies::Action action = fresh->decide(seen, candidates);
        EXPECT_EQ(action.candidate, static_cast<std::size_t>(event.chosen));
        EXPECT_EQ(candidates[action.candidate].plan, event.chosen_plan.value_or(event.plan));
    }
}

/// Four equal replicas of one stage leave nothing to gain. Random search tries what is offered all the same.
TEST(Rules, LeaveAHealthyClusterAlone) {
    scenarios::Scenario scenario = contract_scenario("[]", "{iterations: 60}");
    scenario.strategy.layout.pipeline = 1;
    scenario.strategy.layout.data = 4;
    const auto world = [&] {
        return std::make_unique<sim::SimulatedCluster>(scenario, nullptr, sim::SimulationOptions::quick());
    };
    for (const char* name : {"static", "greedy", "hysteresis", "ski-rental", "oracle"}) {
        policies::EpisodeOptions options;
        options.decision_interval = 5;
        options.max_iterations = 60;
        const auto cluster = world();
        policies::CandidateGenerator generator(cluster->facts());
        Recorded recorded;
        const auto policy = policies::make_policy(name, {world, options});
        EXPECT_EQ(policies::run_episode(*cluster, generator, *policy, options, recorded).switches, 0) << name;
        EXPECT_EQ(recorded.decisions.size(), 11u) << name;
    }
}

std::vector<PolicyOnCluster> all_policies() {
    std::vector<PolicyOnCluster> all;
    for (const policies::PolicyEntry& policy : policies::registered_policies()) {
        for (const Implementation& cluster : implementations()) {
            if (cluster.name != "simulated" && !cluster.real)
                all.push_back({policy, cluster});  // has room for no worlds beside it
        }
    }
    return all;
}

INSTANTIATE_TEST_SUITE_P(Registered, EveryPolicy, ::testing::ValuesIn(all_policies()), [](const auto& one) {
    std::string name = one.param.policy.name + "_" + one.param.cluster.name;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
});

}  // namespace
}  // namespace headway::tests
