#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>

#include "scenarios/language/program.h"
#include "scenarios/language/random.h"
#include "tests/scenarios/language/small_scenario.h"

/// Whatever strategy the language accepts, a plan and the programs of all its stages can be made of it.
namespace headway::scenarios {
namespace {

std::string random_list(RandomStream& random, int count, int sum) {
    std::vector<int> parts(static_cast<std::size_t>(count), 1);
    for (int left = sum - count; left > 0; --left) ++parts[static_cast<std::size_t>(random.below(count))];
    std::string text;
    for (const int part : parts) text += (text.empty() ? "[" : ", ") + std::to_string(part);
    return text + "]";
}

std::vector<Override> random_strategy(RandomStream& random) {
    const auto power = [&](int most) { return std::to_string(1 << random.below(most + 1)); };
    const int nodes = 1 << random.below(3);
    std::vector<Override> overrides{{"cluster.nodes", std::to_string(nodes)},
                                    {"job.global_batch", std::to_string(16 * (1 + random.below(16)))},
                                    {"job.micro_batch", power(2)},
                                    {"job.model.layers", std::to_string(1 + random.below(24))},
                                    {"strategy.tensor", power(2)},
                                    {"strategy.pipeline", std::to_string(1 + random.below(4))},
                                    {"strategy.context", power(1)},
                                    {"strategy.data", random.below(4) ? "auto" : power(4)}};
    const char* const schedules[] = {"gpipe", "1f1b", "interleaved", "zero-bubble"};
    overrides.emplace_back("strategy.schedule", schedules[random.below(4)]);
    if (overrides.back().second == "interleaved" || random.below(8) == 0) {
        overrides.emplace_back("strategy.virtual_pipeline", std::to_string(1 + random.below(3)));
    }
    if (random.below(3) == 0) overrides.emplace_back("strategy.idle_gpus", std::to_string(random.below(5)));
    if (random.below(3) == 0) overrides.emplace_back("strategy.sequence_parallel", "true");
    if (random.below(4) == 0) {
        const int stages = 1 + static_cast<int>(random.below(4));
        overrides.emplace_back("strategy.layers_per_stage",
                               random_list(random, stages, stages + static_cast<int>(random.below(20))));
    }
    return overrides;
}

TEST(RandomStrategies, ThatAreAcceptedHavePlansAndPrograms) {
    RandomStream random(23, "strategies");
    const int rounds = tests::long_tests() ? 20'000 : 400;
    int accepted = 0;
    std::set<Schedule> schedules;
    for (int round = 0; round < rounds; ++round) {
        const std::vector<Override> overrides = random_strategy(random);
        try {
            const Scenario scenario = read_small(overrides);
            const Plan plan = initial_plan(scenario.strategy, scenario.job, scenario.cluster);
            const Layout& layout = plan.layout;
            ASSERT_EQ(layout.world_size(), gpus_used(scenario.strategy, scenario.cluster));
            ASSERT_EQ(std::set<int>(plan.gpu_of_rank.begin(), plan.gpu_of_rank.end()).size(), plan.gpu_of_rank.size());
            ASSERT_EQ(std::accumulate(plan.layers_of_cell.begin(), plan.layers_of_cell.end(), 0),
                      scenario.job.model.layers * layout.data);
            ASSERT_EQ(std::accumulate(plan.micro_batches_of_replica.begin(), plan.micro_batches_of_replica.end(), 0) *
                          scenario.job.micro_batch,
                      scenario.job.global_batch);
            for (int stage = 0; stage < layout.pipeline; ++stage) {
                for (const int micro_batches : plan.micro_batches_of_replica) {
                    ASSERT_NO_THROW(make_program(layout, scenario.job.model.tied_embedding, stage, micro_batches))
                        << write_scenario(scenario);
                }
            }
            ++accepted;
            schedules.insert(layout.schedule);
        } catch (const ConfigError&) {
            // refused; error_test.cpp and checks_test.cpp hold the reasons
        }
    }
    EXPECT_GT(accepted, rounds / 20);
    EXPECT_EQ(schedules.size(), 4u);
}

}  // namespace
}  // namespace headway::scenarios
