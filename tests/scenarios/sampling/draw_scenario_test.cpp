#include "scenarios/sampling/draw_scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "scenarios/costs/memory.h"
#include "scenarios/language/strategy.h"
#include "tests/paths.h"

namespace headway::scenarios {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

Catalogue sampling_catalogue() {
    return {tests::source_directory() / "scenarios"};
}

ScenarioSet curriculum() {
    return read_scenario_set(sampling_catalogue().directory / "curricula" / "default.yaml", sampling_catalogue());
}

std::vector<ScenarioSet> held_out_sets() {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(sampling_catalogue().directory / "heldout"))
        if (entry.path().extension() == ".yaml") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    std::vector<ScenarioSet> sets;
    for (const fs::path& file : files) {
        std::ifstream stream(file);
        const std::string text{std::istreambuf_iterator<char>(stream), {}};
        if (is_scenario_set(text, file.string())) sets.push_back(read_scenario_set(file, sampling_catalogue()));
    }
    return sets;
}

bool same(const DrawnScenario& a, const DrawnScenario& b) {
    return a.scenario == b.scenario && a.plan == b.plan && a.family == b.family;
}

TEST(DrawScenario, IsTheSameWheneverItIsDrawn) {
    const ScenarioSet set = curriculum();
    const DrawnScenario seventh = draw_scenario(set, 7);
    draw_scenario(set, 3);
    EXPECT_TRUE(same(draw_scenario(set, 7), seventh));
    EXPECT_FALSE(same(draw_scenario(set, 8), seventh));
    ScenarioSet other = set;
    ++other.seed;
    EXPECT_FALSE(same(draw_scenario(other, 7), seventh));
}

TEST(DrawScenario, GivesRunsThatFitInMemoryAndEndInTime) {
    std::vector<ScenarioSet> sets = held_out_sets();
    sets.push_back(curriculum());
    for (const ScenarioSet& set : sets) {
        for (int index = 0; index < std::min(set.count, 24); ++index) {
            SCOPED_TRACE(set.name + " " + std::to_string(index));
            const DrawnScenario drawn = draw_scenario(set, static_cast<std::uint64_t>(index));
            const Scenario& scenario = drawn.scenario;
            EXPECT_TRUE(drawn.plan == initial_plan(scenario.strategy, scenario.job, scenario.cluster));
            EXPECT_TRUE(memory_shortages(scenario.job, scenario.cluster, drawn.plan).empty());
            EXPECT_GE(*scenario.run.time, set.run.shortest);
            EXPECT_LE(*scenario.run.time, set.run.longest);
            for (const Disturbance& disturbance : scenario.disturbances)
                EXPECT_LT(disturbance.start, *scenario.run.time);
        }
    }
}

TEST(DrawScenario, ReadsBackFromItsResolvedForm) {
    const ScenarioSet set = curriculum();
    for (std::uint64_t index = 0; index < 12; ++index) {
        const Scenario scenario = draw_scenario(set, index).scenario;
        const std::string text = write_scenario(scenario);
        EXPECT_TRUE(parse_scenario(text, "drawn.yaml", "/nonexistent", Catalogue{"/nonexistent"}) == scenario) << text;
    }
}

TEST(DrawScenario, KeepsTheWorldWhenOnlyTheFamilyIsAskedFor) {
    const ScenarioSet set = curriculum();
    const DrawnScenario slow = draw_scenario(set, 5, {"dedicated, slow GPU", nullptr});
    const DrawnScenario healthy = draw_scenario(set, 5, {"healthy", nullptr});
    EXPECT_EQ(slow.family, "dedicated, slow GPU");
    EXPECT_TRUE(slow.scenario.cluster == healthy.scenario.cluster);
    EXPECT_TRUE(slow.plan == healthy.plan);
    EXPECT_THROW(draw_scenario(set, 5, {"no such family", nullptr}), std::invalid_argument);
}

TEST(DrawScenario, DrawsSeveritiesAndDurationsInsideTheirRanges) {
    const ScenarioSet set = curriculum();
    std::set<int> counts;
    double least = 1.0, most = 0.0;
    for (std::uint64_t index = 0; index < 200; ++index) {
        const DrawnScenario drawn = draw_scenario(set, index, {"shared, slow compute", nullptr});
        counts.insert(static_cast<int>(drawn.scenario.disturbances.size()));
        std::set<int> gpus;
        for (const Disturbance& disturbance : drawn.scenario.disturbances) {
            const auto& slow = std::get<SpeedFactor>(disturbance.cause);
            least = std::min(least, slow.factor);
            most = std::max(most, slow.factor);
            EXPECT_TRUE(gpus.insert(slow.at.gpu).second) << "two strikes on one GPU";
            ASSERT_TRUE(disturbance.duration.has_value());
            EXPECT_GE(disturbance.duration->s(), 30.0);
            EXPECT_LE(disturbance.duration->s(), 45 * 60.0);
        }
    }
    EXPECT_EQ(counts, (std::set<int>{1, 2, 3, 4}));
    EXPECT_GE(least, 0.3);
    EXPECT_LE(least, 0.32);
    EXPECT_LE(most, 0.9);
    EXPECT_GE(most, 0.88);
}

TEST(DrawScenario, StrikesWholeStagesOfPlansThatHaveSome) {
    const ScenarioSet set = curriculum();
    for (std::uint64_t index = 0; index < 20; ++index) {
        const DrawnScenario drawn = draw_scenario(set, index, {"dedicated, long last stage", nullptr});
        const Layout& layout = drawn.plan.layout;
        ASSERT_GE(layout.pipeline, 2);
        int gpus = 0;
        for (const Disturbance& disturbance : drawn.scenario.disturbances) {
            const GpuTarget& at = std::get<SpeedFactor>(disturbance.cause).at;
            gpus += at.node >= 0 ? drawn.scenario.cluster.node(at.node).gpus : 1;
        }
        EXPECT_EQ(gpus, layout.data * layout.tensor);
    }
}

TEST(DrawScenario, ObeysTheStage) {
    const ScenarioSet set = curriculum();
    const SetStage& first = set.stages.front();
    std::set<std::string> families;
    for (std::uint64_t index = 0; index < 60; ++index) {
        const DrawnScenario drawn = draw_scenario(set, index, {std::nullopt, &first});
        EXPECT_LE(drawn.scenario.cluster.gpus(), first.largest_gpus);
        EXPECT_TRUE(std::count(first.families.begin(), first.families.end(), drawn.family)) << drawn.family;
        families.insert(drawn.family);
    }
    EXPECT_EQ(families.size(), first.families.size());
    EXPECT_THROW(draw_scenario(set, 0, {"bad day", &first}), std::invalid_argument);
}

TEST(DrawScenario, SaysSoWhenNothingFits) {
    const std::string text =
        "name: too big\ncount: 1\njobs: [{model: gpt3-175b, stack: megatron-lm-2022, global_batch: [64]}]\n"
        "clusters: [{cluster: selene, nodes: [1]}]\nfamilies: [{name: healthy}]\n";
    const ScenarioSet set = parse_scenario_set(text, "set.yaml", ".", sampling_catalogue());
    try {
        draw_scenario(set, 0);
        FAIL() << "175B on 8 GPUs fits";
    } catch (const ConfigError& error) {
        EXPECT_THAT(error.what(), HasSubstr("scenario set too big: scenario 0 (healthy): none of 200 draws"));
    }
}

TEST(HeldOutSets, HoldAtLeastTwoHundredScenariosThatNobodyTrainedOn) {
    const ScenarioSet trained = curriculum();
    std::set<std::string> models, families, shapes;
    const auto shape = [](const ClusterChoice& choice, int nodes) {
        return choice.cluster.name + " " + std::to_string(nodes);
    };
    for (const JobChoice& job : trained.jobs) models.insert(job.model.name);
    for (const ScenarioFamily& family : trained.families) families.insert(family.name);
    for (const ClusterChoice& choice : trained.clusters)
        for (const int nodes : choice.nodes) shapes.insert(shape(choice, nodes));
    int scenarios = 0;
    std::set<std::string> new_families;
    for (const ScenarioSet& set : held_out_sets()) {
        scenarios += set.count;
        for (const JobChoice& job : set.jobs) EXPECT_FALSE(models.contains(job.model.name)) << job.model.name;
        for (const ClusterChoice& choice : set.clusters)
            for (const int nodes : choice.nodes) EXPECT_FALSE(shapes.contains(shape(choice, nodes)));
        for (const ScenarioFamily& family : set.families)
            if (!families.contains(family.name)) new_families.insert(family.name);
    }
    EXPECT_GE(scenarios, 200);
    EXPECT_GE(new_families.size(), 8u);
}

}  // namespace
}  // namespace headway::scenarios
