#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "policies/observation.h"
#include "policies/planning/candidate_generator.h"
#include "scenarios/costs/memory.h"
#include "scenarios/language/plan_check.h"
#include "sim/simulated_cluster.h"
#include "tests/property/disturbed_jobs.h"

/// Candidates of random jobs on random disturbed clusters, each tried out in a world of its own.
namespace headway::sim {
namespace {

using policies::Candidate;
using policies::Observation;
using scenarios::Plan;

constexpr int kInterval = 10, kIntervals = 6;

Observation observe(SimulatedCluster& cluster, policies::CandidateGenerator& generator,
                    std::vector<Candidate>& candidates, std::uint64_t seed) {
    cluster.start_episode(seed);
    generator.start_episode();
    policies::ObservationBuilder builder;
    builder.start_episode();
    Observation seen;
    for (int i = 0; i < kIntervals; ++i) {
        const policies::Measurements measured = cluster.run(cluster.facts().initial_plan, kInterval);
        seen = builder.build(cluster.facts(), cluster.facts().initial_plan, measured, cluster.now());
        candidates = generator.propose(seen);
    }
    return seen;
}

class Candidates : public testing::TestWithParam<int> {};

TEST_P(Candidates, AreLegalAndTakeWhatTheySay) {
    const auto seed = static_cast<std::uint64_t>(GetParam());
    const scenarios::Scenario scenario = tests::disturbed_job(seed);
    SimulatedCluster cluster(scenario, nullptr, SimulationOptions{.heat_together = true});
    policies::CandidateGenerator generator(cluster.facts());
    std::vector<Candidate> candidates;
    observe(cluster, generator, candidates, seed);
    std::string what = "seed " + std::to_string(seed) + ", " + scenario.job.model.name + " " +
                       scenarios::describe(cluster.facts().initial_plan.layout);
    for (const scenarios::Disturbance& disturbance : scenario.disturbances) what += ", " + disturbance.name;
    ASSERT_LE(candidates.size(), 24u);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const Candidate& candidate = candidates[i];
        const std::string name = what + ", " + policies::name_of(candidate.kind) + ": " + candidate.why;
        EXPECT_NO_THROW(scenarios::check_plan(scenario.job, scenario.cluster, candidate.plan)) << name;
        EXPECT_TRUE(scenarios::memory_shortages(scenario.job, scenario.cluster, candidate.plan).empty()) << name;
        EXPECT_FALSE(candidate.why.empty());
        for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(candidates[j].plan == candidate.plan) << name;

        const auto world = cluster.another();
        world->start_episode(seed);
        world->run(cluster.facts().initial_plan, kInterval * kIntervals);
        const double pause = world->move_to(candidate.plan).s();
        EXPECT_NEAR(candidate.predicted.pause.s(), pause, 0.05 * pause + 0.05) << name;
        world->run(candidate.plan, kInterval);  // heat settles
        const policies::Measurements measured = world->run(candidate.plan, kInterval);
        double sum = 0.0;
        for (const scenarios::Duration duration : measured.iterations) sum += duration.s();
        const double took = sum / static_cast<double>(measured.iterations.size());
        // Other degrees: contention that they bring about is not predicted, nor how much of a slow GPU is its memory.
        const double tolerance = candidate.plan.layout == cluster.facts().initial_plan.layout ? 0.03 : 0.08;
        EXPECT_NEAR(candidate.predicted.iteration.s() / took, 1.0, tolerance) << name << "; took " << took;
    }
}

INSTANTIATE_TEST_SUITE_P(Random, Candidates, testing::Range(1, 25));

}  // namespace
}  // namespace headway::sim
