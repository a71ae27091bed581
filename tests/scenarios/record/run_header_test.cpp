#include "scenarios/record/run_header.h"

#include <gtest/gtest.h>

#include "scenarios/language/read.h"
#include "tests/paths.h"

namespace headway::tests {
namespace {

using namespace scenarios;

RunHeader header_of(const Scenario& scenario) {
    const Plan plan = initial_plan(scenario.strategy, scenario.job, scenario.cluster);
    return make_run_header(scenario, plan, scenario.policy, Duration::seconds(10),
                           iteration_costs(scenario.job, scenario.cluster, plan));
}

TEST(RunHeader, BringsTheScenarioBackWithItsGeneratedDisturbances) {
    const auto folder = source_directory() / "scenarios";
    const Catalogue catalogue{folder};
    for (const char* name : {"quickstart.yaml", "bad-day.yaml", "mixed-a100-h800.yaml"}) {
        const Scenario scenario = read_scenario(folder / name, catalogue);
        const RunHeader header = header_of(scenario);
        // A record stands alone: no catalogue is needed to read its scenario.
        EXPECT_EQ(parse_scenario(header.scenario_yaml, "record", folder, Catalogue{"/no/such/folder"}), scenario)
            << name;
        ASSERT_EQ(header.disturbances.size(), scenario.disturbances.size()) << name;
        EXPECT_FALSE(header.disturbances.empty()) << name;
    }
}

TEST(RunHeader, StatesWhatReportsNeed) {
    const auto folder = source_directory() / "scenarios";
    const Scenario scenario = read_scenario(folder / "quickstart.yaml", Catalogue{folder});
    const RunHeader header = header_of(scenario);
    EXPECT_EQ(header.scenario, "quickstart");
    EXPECT_EQ(header.planned_iterations, 0);
    EXPECT_EQ(header.planned_ns, scenario.run.time->ns());
    EXPECT_EQ(header.tokens_per_iteration, 2304 * 2048);
    EXPECT_EQ(header.plan.gpu_of_rank.size(), 1536u);
    ASSERT_EQ(header.node_groups.size(), 1u);
    EXPECT_EQ(header.node_groups[0].nodes, 192);
    EXPECT_EQ(header.node_groups[0].gpus_per_node, 8);
    EXPECT_EQ(header.disturbances.back().kind, "node_loss");
    EXPECT_EQ(header.disturbances.back().duration_ns, -1);
    // Narayanan et al. 2021, equation 3: 96 B s l h^2 (1 + s / 6h + V / 16lh), with recomputation of every layer.
    const double h = 12288, s = 2048, l = 80, batch = 2304, vocabulary = scenario.job.model.vocab;
    EXPECT_NEAR(header.hardware_flops / (96 * batch * s * l * h * h * (1 + s / (6 * h) + vocabulary / (16 * l * h))),
                1.0, 0.01);
    EXPECT_NEAR(header.peak_flops_per_second, 1536 * 312e12, 1e12);
}

}  // namespace
}  // namespace headway::tests
