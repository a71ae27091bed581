#include "policies/observation.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace headway::policies {
namespace {

/// Two replicas of two stages on four GPUs; rank order is pipeline slowest: ranks 0, 1 are stage 0 of replicas 0, 1.
ClusterFacts facts_of_two_by_two() {
    ClusterFacts facts;
    scenarios::Model& model = facts.job.model;
    model.layers = 8;
    model.hidden = 64;
    model.heads = 4;
    model.kv_heads = 4;
    model.ffn = 256;
    model.vocab = 1000;
    model.sequence_length = 32;
    scenarios::Plan& plan = facts.initial_plan;
    plan.layout.pipeline = 2;
    plan.layout.data = 2;
    plan.gpu_of_rank = {0, 1, 2, 3};
    plan.layers_of_cell = scenarios::same_layers({4, 4}, plan.layout.data);
    plan.micro_batches_of_replica = {6, 6};
    return facts;
}

Measurements measured(const std::vector<double>& compute_ms) {
    Measurements result;
    result.iterations = {Duration::milliseconds(100), Duration::milliseconds(103)};
    for (std::size_t rank = 0; rank < compute_ms.size(); ++rank) {
        RankMeasurement raw;
        raw.gpu = static_cast<int>(rank);
        raw.compute = Duration::milliseconds(compute_ms[rank]);
        result.ranks.push_back(raw);
    }
    return result;
}

TEST(Observation, ScoresARankAgainstTheFastestOfItsStage) {
    const ClusterFacts facts = facts_of_two_by_two();
    ObservationBuilder builder;
    const auto seen = builder.build(facts, facts.initial_plan, measured({80, 40, 50, 50}), Duration::seconds(1));
    ASSERT_EQ(seen.ranks.size(), 4u);
    EXPECT_DOUBLE_EQ(seen.ranks[0].relative_score, 0.5);
    EXPECT_DOUBLE_EQ(seen.ranks[1].relative_score, 1.0);
    EXPECT_DOUBLE_EQ(seen.ranks[2].relative_score, 1.0);
    EXPECT_EQ(seen.iteration, Duration::nanoseconds(101'500'000));
    EXPECT_EQ(seen.now, Duration::seconds(1));
}

TEST(Observation, ScoresAGpuAgainstItsOwnBestSoFar) {
    const ClusterFacts facts = facts_of_two_by_two();
    ObservationBuilder builder;
    builder.build(facts, facts.initial_plan, measured({40, 40, 50, 50}), Duration::seconds(1));
    const auto seen = builder.build(facts, facts.initial_plan, measured({40, 50, 100, 50}), Duration::seconds(2));
    EXPECT_DOUBLE_EQ(seen.ranks[0].individual_score, 1.0);
    EXPECT_DOUBLE_EQ(seen.ranks[1].individual_score, 0.8);
    EXPECT_DOUBLE_EQ(seen.ranks[2].individual_score, 0.5);
}

TEST(Observation, CreditsAReplicaForTheMicroBatchesItTrained) {
    ClusterFacts facts = facts_of_two_by_two();
    facts.initial_plan.micro_batches_of_replica = {4, 8};
    ObservationBuilder builder;
    const auto seen = builder.build(facts, facts.initial_plan, measured({40, 80, 40, 80}), Duration::seconds(1));
    for (const RankObservation& rank : seen.ranks) EXPECT_DOUBLE_EQ(rank.relative_score, 1.0);
}

TEST(Observation, ComparesOneGpuAcrossPlansByTheLayersItHolds) {
    const ClusterFacts facts = facts_of_two_by_two();
    ObservationBuilder builder;
    builder.build(facts, facts.initial_plan, measured({40, 40, 50, 50}), Duration::seconds(1));
    scenarios::Plan other = facts.initial_plan;
    other.layers_of_cell = scenarios::same_layers({2, 6}, other.layout.data);
    const auto seen = builder.build(facts, other, measured({20, 20, 70, 70}), Duration::seconds(2));
    EXPECT_DOUBLE_EQ(seen.ranks[0].individual_score, 1.0);
    EXPECT_DOUBLE_EQ(seen.ranks[1].individual_score, 1.0);
}

TEST(Observation, ForgetsTheBestOfAnEarlierEpisode) {
    const ClusterFacts facts = facts_of_two_by_two();
    ObservationBuilder builder;
    builder.build(facts, facts.initial_plan, measured({10, 10, 10, 10}), Duration::seconds(1));
    builder.start_episode();
    const auto seen = builder.build(facts, facts.initial_plan, measured({40, 40, 40, 40}), Duration::seconds(1));
    for (const RankObservation& rank : seen.ranks) EXPECT_DOUBLE_EQ(rank.individual_score, 1.0);
}

TEST(Observation, ScoresOneWhereNothingWasComputed) {
    const ClusterFacts facts = facts_of_two_by_two();
    ObservationBuilder builder;
    const auto idle = builder.build(facts, facts.initial_plan, measured({0, 40, 0, 0}), Duration::seconds(1));
    EXPECT_DOUBLE_EQ(idle.ranks[0].relative_score, 1.0);
    EXPECT_DOUBLE_EQ(idle.ranks[2].individual_score, 1.0);

    Measurements nothing;
    nothing.loss = Loss{{3}, Duration::seconds(2)};
    const auto lost = builder.build(facts, facts.initial_plan, nothing, Duration::seconds(3));
    EXPECT_TRUE(lost.ranks.empty());
    EXPECT_EQ(lost.iteration, Duration());
    ASSERT_TRUE(lost.loss);
    EXPECT_EQ(lost.loss->gpus, std::vector<int>{3});
}

TEST(Observation, RejectsMeasurementsThatDoNotFitThePlan) {
    const ClusterFacts facts = facts_of_two_by_two();
    ObservationBuilder builder;
    EXPECT_THROW(builder.build(facts, facts.initial_plan, measured({40, 40}), Duration()), std::invalid_argument);
}

}  // namespace
}  // namespace headway::policies
