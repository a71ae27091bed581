#include "scenarios/language/strategy.h"

#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>

#include "tests/scenarios/language/small_scenario.h"

namespace headway::scenarios {
namespace {

TEST(EvenLayers, DifferByAtMostOneAndFavourTheMiddle) {
    EXPECT_EQ(even_layers(80, 16), std::vector<int>(16, 5));
    EXPECT_EQ(even_layers(70, 12), (std::vector<int>{5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 5}));
    EXPECT_EQ(even_layers(13, 4), (std::vector<int>{3, 3, 4, 3}));
    EXPECT_EQ(even_layers(7, 1), std::vector<int>{7});
    EXPECT_THROW(even_layers(3, 4), std::invalid_argument);
    for (int stages = 1; stages <= 40; ++stages) {
        for (int layers = stages; layers < 4 * stages; ++layers) {
            const std::vector<int> shares = even_layers(layers, stages);
            ASSERT_EQ(std::accumulate(shares.begin(), shares.end(), 0), layers);
            const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
            ASSERT_LE(*most - *least, 1);
        }
    }
}

TEST(InitialPlan, FillsInWhatTheStrategyLeavesOut) {
    const Scenario scenario = read_small();
    const Plan plan = initial_plan(scenario.strategy, scenario.job, scenario.cluster);
    EXPECT_EQ(plan.layout.world_size(), 8);
    EXPECT_EQ(plan.gpu_of_rank, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
    EXPECT_EQ(plan.layers_of_cell, same_layers({6, 6}, plan.layout.data));
    EXPECT_EQ(plan.micro_batches_of_replica, (std::vector<int>{4, 4}));
}

TEST(InitialPlan, KeepsWhatTheStrategySays) {
    const Scenario scenario = read_small({{"strategy.placement", "[7, 6, 5, 4, 3, 2, 1, 0]"},
                                          {"strategy.layers_per_stage", "[7, 5]"},
                                          {"strategy.micro_batches_per_replica", "[5, 3]"}});
    const Plan plan = initial_plan(scenario.strategy, scenario.job, scenario.cluster);
    EXPECT_EQ(plan.gpu_of_rank.front(), 7);
    EXPECT_EQ(plan.layers_of_cell, same_layers({7, 5}, plan.layout.data));
    EXPECT_EQ(plan.micro_batches_of_replica, (std::vector<int>{5, 3}));
    // Rank order: tensor fastest, then data, then pipeline.
    EXPECT_EQ(plan.gpu_of_worker(1, 0, 0), 5);
    EXPECT_EQ(plan.gpu_of_worker(0, 1, 1), 2);
}

TEST(InitialPlan, GivesTheFirstReplicasTheMicroBatchesThatAreLeftOver) {
    Scenario scenario = read_small();
    scenario.job.global_batch = 14;
    EXPECT_EQ(initial_plan(scenario.strategy, scenario.job, scenario.cluster).micro_batches_of_replica,
              (std::vector<int>{4, 3}));
}

TEST(InitialPlan, RejectsContradictions) {
    Scenario scenario = read_small();
    scenario.strategy.layout.data = 3;
    EXPECT_THROW(initial_plan(scenario.strategy, scenario.job, scenario.cluster), std::invalid_argument);
    scenario = read_small();
    scenario.strategy.placement = {0, 1, 2, 3, 4, 5, 6, 6};
    EXPECT_THROW(initial_plan(scenario.strategy, scenario.job, scenario.cluster), std::invalid_argument);
    scenario = read_small();
    scenario.job.global_batch = 2;
    EXPECT_THROW(initial_plan(scenario.strategy, scenario.job, scenario.cluster), std::invalid_argument);
}

TEST(Describe, NamesDegreesScheduleAndRecomputation) {
    Layout layout;
    layout.tensor = 8;
    layout.pipeline = 8;
    layout.data = 24;
    layout.virtual_pipeline = 2;
    layout.schedule = Schedule::kInterleaved;
    layout.recompute = Recompute::kFull;
    EXPECT_EQ(describe(layout), "t8 p8 d24 c1 v2 interleaved, recompute full");
    layout.sequence_parallel = true;
    EXPECT_EQ(describe(layout), "t8 p8 d24 c1 v2 interleaved, recompute full, sequence parallel");
}

}  // namespace
}  // namespace headway::scenarios
