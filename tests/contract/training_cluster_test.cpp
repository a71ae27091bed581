#include "policies/training_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>

#include "policies/episode.h"
#include "tests/contract/cluster_contract.h"

/// What every implementation of the seam promises (policies/training_cluster.h).
namespace headway::tests {
namespace {

using policies::Duration;
using policies::Measurements;
using policies::TrainingCluster;

TEST_P(TrainingClusterContract, KnowsAnInitialPlanThatFitsJobAndCluster) {
    const auto cluster = make(contract_scenario());
    const policies::ClusterFacts& facts = cluster->facts();
    const scenarios::Plan& plan = facts.initial_plan;
    EXPECT_EQ(plan.gpu_of_rank.size(), static_cast<std::size_t>(plan.layout.world_size()));
    EXPECT_EQ(std::set<int>(plan.gpu_of_rank.begin(), plan.gpu_of_rank.end()).size(), plan.gpu_of_rank.size());
    EXPECT_EQ(std::accumulate(plan.layers_of_cell.begin(), plan.layers_of_cell.end(), 0),
              facts.job.model.layers * plan.layout.data);
    EXPECT_EQ(std::accumulate(plan.micro_batches_of_replica.begin(), plan.micro_batches_of_replica.end(), 0),
              facts.job.global_batch / facts.job.micro_batch);
    EXPECT_EQ(facts.cluster.gpus(), 4);
}

TEST_P(TrainingClusterContract, StartsAtTimeZeroAndNeverRunsBackwards) {
    const auto cluster = make(GetParam().no_recovery.empty() ? contract_scenario_with_loss() : contract_scenario());
    EXPECT_EQ(cluster->now(), Duration());
    Duration before;
    for (int i = 0; i < 60; ++i) {
        const Measurements measured = cluster->run(cluster->facts().initial_plan, 3);
        EXPECT_GE(cluster->now(), before);
        const Duration trained = std::accumulate(measured.iterations.begin(), measured.iterations.end(), Duration());
        EXPECT_GE(cluster->now() - before, trained) << "iterations take their time";
        for (const Duration iteration : measured.iterations) EXPECT_GT(iteration, Duration());
        before = cluster->now();
        if (measured.loss) {
            EXPECT_LE(measured.loss->noticed_at, cluster->now());
            const policies::RecoveryOutcome outcome = cluster->recover({});
            EXPECT_GE(outcome.pause, Duration());
            EXPECT_GE(cluster->now() - before, outcome.pause);
            before = cluster->now();
        }
        if (measured.ended) break;
    }
}

TEST_P(TrainingClusterContract, MeasuresEveryRankOfThePlan) {
    const auto cluster = make(contract_scenario());
    const scenarios::Plan& plan = cluster->facts().initial_plan;
    const Measurements measured = cluster->run(plan, 3);
    EXPECT_EQ(measured.iterations.size(), 3u);
    EXPECT_FALSE(measured.loss);
    EXPECT_FALSE(measured.ended);
    ASSERT_EQ(measured.ranks.size(), plan.gpu_of_rank.size());
    for (std::size_t rank = 0; rank < measured.ranks.size(); ++rank) {
        EXPECT_EQ(measured.ranks[rank].gpu, plan.gpu_of_rank[rank]);
        EXPECT_GT(measured.ranks[rank].compute, Duration());
        EXPECT_GE(measured.ranks[rank].exposed_communication, Duration());
        EXPECT_GE(measured.ranks[rank].idle, Duration());
        EXPECT_LE(measured.ranks[rank].compute, measured.iterations[0].scaled(1.5));
    }
}

TEST_P(TrainingClusterContract, GivesEqualEpisodesForEqualSeeds) {
    SKIP_WHERE_MISSING(false, true);
    const auto cluster = make(contract_scenario("[{start: 0 s, jitter: {spread: 0.05}}]"));
    std::vector<Measurements> first;
    std::vector<Duration> times;
    cluster->start_episode(11);
    for (int i = 0; i < 4; ++i) {
        first.push_back(cluster->run(cluster->facts().initial_plan, 4));
        times.push_back(cluster->now());
    }
    cluster->start_episode(12);
    const Measurements other = cluster->run(cluster->facts().initial_plan, 4);
    EXPECT_NE(other.iterations, first[0].iterations) << "the seed changes nothing";
    cluster->start_episode(11);
    EXPECT_EQ(cluster->now(), Duration());
    for (int i = 0; i < 4; ++i) {
        SCOPED_TRACE(i);
        expect_equal(cluster->run(cluster->facts().initial_plan, 4), first[static_cast<std::size_t>(i)]);
        EXPECT_EQ(cluster->now(), times[static_cast<std::size_t>(i)]);
    }
}

TEST_P(TrainingClusterContract, StartsAnewAfterALoss) {
    SKIP_WHERE_MISSING(true, false);
    const auto cluster = make(contract_scenario_with_loss());
    const Measurements first = run_to_loss(*cluster);
    cluster->start_episode(contract_scenario_with_loss().seed);  // without recovering
    EXPECT_EQ(cluster->now(), Duration());
    expect_equal(run_to_loss(*cluster), first);
}

TEST_P(TrainingClusterContract, ReportsALossOnceAndGoesOnAfterRecovery) {
    SKIP_WHERE_MISSING(true, false);
    const auto cluster = make(contract_scenario_with_loss());
    const Measurements measured = run_to_loss(*cluster);
    ASSERT_TRUE(measured.loss);
    EXPECT_EQ(std::set<int>(measured.loss->gpus.begin(), measured.loss->gpus.end()), (std::set<int>{2, 3}));
    EXPECT_FALSE(measured.ended);
    EXPECT_LT(measured.iterations.size(), 5u) << "the lost iteration was not completed";
    EXPECT_THROW(cluster->run(cluster->facts().initial_plan, 1), std::invalid_argument);
    EXPECT_THROW(cluster->move_to(cluster->facts().initial_plan), std::invalid_argument);

    const policies::RecoveryOutcome outcome = cluster->recover({});
    EXPECT_GE(outcome.pause, Duration::seconds(30)) << "nobody keeps a spare: the repair takes 30 s";
    EXPECT_GE(outcome.iterations_lost, 0);
    EXPECT_EQ(outcome.plan, cluster->facts().initial_plan);
    EXPECT_THROW(cluster->recover({}), std::invalid_argument) << "once is enough";

    const Measurements after = cluster->run(outcome.plan, 5);
    EXPECT_FALSE(after.loss);
    EXPECT_EQ(after.iterations.size(), 5u);
}

TEST_P(TrainingClusterContract, RefusesToRecoverFromNothing) {
    const auto cluster = make(contract_scenario());
    EXPECT_THROW(cluster->recover({}), std::invalid_argument);
}

TEST_P(TrainingClusterContract, MovesToThePlanItHasForFree) {
    const auto cluster = make(contract_scenario());
    cluster->run(cluster->facts().initial_plan, 2);
    const Duration before = cluster->now();
    EXPECT_EQ(cluster->move_to(cluster->facts().initial_plan), Duration());
    EXPECT_EQ(cluster->now(), before);
}

TEST_P(TrainingClusterContract, ChargesAMoveToAnotherPlan) {
    const auto cluster = make(contract_scenario());
    cluster->run(cluster->facts().initial_plan, 2);
    scenarios::Plan other = cluster->facts().initial_plan;
    other.micro_batches_of_replica = {6, 10};
    const Duration before = cluster->now();
    const Duration pause = cluster->move_to(other);
    EXPECT_GT(pause, Duration());
    EXPECT_EQ(cluster->now() - before, pause);
    EXPECT_EQ(cluster->run(other, 2).iterations.size(), 2u);
    EXPECT_EQ(cluster->move_to(other), Duration());
}

TEST_P(TrainingClusterContract, RejectsPlansThatCannotRun) {
    const auto cluster = make(contract_scenario());
    const scenarios::Plan good = cluster->facts().initial_plan;
    std::vector<scenarios::Plan> bad(6, good);
    bad[0].gpu_of_rank[1] = bad[0].gpu_of_rank[0];  // one GPU twice
    bad[1].gpu_of_rank[0] = 99;                     // no such GPU
    bad[2].gpu_of_rank.pop_back();                  // a rank without a GPU
    bad[3].layers_of_cell[0] -= 1;                  // a layer left out
    bad[4].micro_batches_of_replica[0] += 1;        // more than the batch
    bad[5].layout.data = 3;                         // more replicas than placed
    for (std::size_t i = 0; i < bad.size(); ++i) {
        EXPECT_THROW(cluster->run(bad[i], 1), std::invalid_argument) << i;
        EXPECT_THROW(cluster->move_to(bad[i]), std::invalid_argument) << i;
    }
    EXPECT_EQ(cluster->now(), Duration()) << "a plan that cannot run takes no time";
    EXPECT_EQ(cluster->run(good, 1).iterations.size(), 1u);
}

TEST_P(TrainingClusterContract, TrainsNothingWhenAskedForNothing) {
    const auto cluster = make(contract_scenario());
    const Measurements measured = cluster->run(cluster->facts().initial_plan, 0);
    EXPECT_TRUE(measured.iterations.empty());
    EXPECT_TRUE(measured.ranks.empty());
    EXPECT_FALSE(measured.ended);
    EXPECT_EQ(cluster->now(), Duration());
    EXPECT_THROW(cluster->run(cluster->facts().initial_plan, -1), std::invalid_argument);
}

TEST_P(TrainingClusterContract, SaysWhenTheScenarioEnds) {
    const auto cluster = make(contract_scenario("[]", "{iterations: 7}"));
    EXPECT_FALSE(cluster->run(cluster->facts().initial_plan, 5).ended);
    const Measurements last = cluster->run(cluster->facts().initial_plan, 5);
    EXPECT_EQ(last.iterations.size(), 2u);
    EXPECT_TRUE(last.ended);
    const Duration end = cluster->now();
    const Measurements nothing = cluster->run(cluster->facts().initial_plan, 5);
    EXPECT_TRUE(nothing.iterations.empty());
    EXPECT_TRUE(nothing.ended);
    EXPECT_EQ(cluster->now(), end);
}

TEST_P(TrainingClusterContract, CarriesAnEpisodeThroughALossToItsEnd) {
    SKIP_WHERE_MISSING(true, false);
    const scenarios::Scenario scenario = contract_scenario_with_loss();
    const auto cluster = make(scenario);
    const auto policy = policies::make_policy("static");
    policies::EpisodeOptions options;
    options.decision_interval = scenario.decision_interval;
    options.seed = scenario.seed;
    struct Told final : policies::EpisodeSink {
        bool decided(const policies::Decision& decision) override {
            kinds.push_back(decision.candidates.at(decision.chosen.candidate).kind);
            EXPECT_GE(decision.observation.now, before);
            before = decision.observation.now;
            return true;
        }
        std::vector<policies::Candidate::Kind> kinds;
        Duration before;
    } told;
    policies::CandidateGenerator generator(cluster->facts());
    const auto summary = policies::run_episode(*cluster, generator, *policy, options, told);
    const auto& kinds = told.kinds;
    EXPECT_TRUE(summary.complete);
    EXPECT_EQ(std::count(kinds.begin(), kinds.end(), policies::Candidate::Kind::kWaitForReplacement), 1);
    EXPECT_EQ(static_cast<std::size_t>(summary.decisions), kinds.size());
    EXPECT_EQ(summary.switches, 0);
    EXPECT_GT(summary.iterations, 0);
    EXPECT_GE(summary.wall, Duration::seconds(60));
    EXPECT_GE(summary.paused, Duration::seconds(30));
}

INSTANTIATE_TEST_SUITE_P(Seam, TrainingClusterContract, ::testing::ValuesIn(implementations()),
                         [](const auto& implementation) { return implementation.param.name; });

}  // namespace
}  // namespace headway::tests
