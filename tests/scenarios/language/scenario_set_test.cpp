#include "scenarios/language/scenario_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/paths.h"

namespace headway::scenarios {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const char* const kSmallSet = R"(count: 4
jobs:
  - {model: gpt3-1.3b, stack: megatron-lm-2022, global_batch: [64]}
clusters:
  - {cluster: selene, nodes: [2, 4]}
families:
  - name: slow GPU
    causes:
      - {cause: speed_factor, severity: {min: 0.4, max: 0.9}}
)";

ScenarioSet parsed(const std::string& text) {
    return parse_scenario_set(text, "small.yaml", ".", {tests::source_directory() / "scenarios"});
}

std::string error_of(const std::string& text) {
    try {
        parsed(text);
    } catch (const ConfigError& error) {
        return error.what();
    }
    return "no error";
}

std::string with(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    if (at == std::string::npos) throw std::logic_error("the set lacks " + from);
    return text.replace(at, from.size(), to);
}

TEST(ScenarioSet, FillsInDefaultsAndCatalogueEntries) {
    const ScenarioSet set = parsed(kSmallSet);
    EXPECT_EQ(set.name, "small");
    EXPECT_EQ(set.count, 4);
    EXPECT_EQ(set.jobs.at(0).model.layers, 24);
    EXPECT_EQ(set.jobs.at(0).micro_batch, std::vector<int>{1});
    EXPECT_EQ(set.clusters.at(0).cluster.node(0).gpu.name, "A100-SXM4-80GB");
    ASSERT_EQ(set.stages.size(), 1u) << "a set without stages has one with everything";
    EXPECT_EQ(set.stages[0].until, 1.0);
}

TEST(ScenarioSet, IsToldFromAScenarioByItsFamilies) {
    EXPECT_TRUE(is_scenario_set(kSmallSet, "small.yaml"));
    EXPECT_FALSE(is_scenario_set("job: {model: gpt3-1.3b}\ncluster: selene\n", "scenario.yaml"));
}

TEST(ScenarioSet, SaysSoWhereAScenarioIsGivenForASetOrASetForAScenario) {
    EXPECT_THAT(error_of("job: {model: gpt3-1.3b}\n"),
                HasSubstr("small.yaml:1:1: a scenario (it has a job), where a set"));
    try {
        parse_scenario(kSmallSet, "small.yaml", ".", {tests::source_directory() / "scenarios"});
        FAIL() << "a set is no scenario";
    } catch (const ConfigError& error) {
        EXPECT_THAT(error.what(), HasSubstr("a set of scenarios (it has families), where one scenario is wanted"));
    }
    const std::string misspelt = with(kSmallSet, "families:", "familys:");
    EXPECT_TRUE(is_scenario_set(misspelt, "small.yaml"));
    EXPECT_THAT(error_of(misspelt), HasSubstr("families: missing"));
}

TEST(ScenarioSet, StagesFollowEachOther) {
    const ScenarioSet set = parsed(std::string(kSmallSet) +
                                   "stages:\n  - {name: a, until: 0.25, families: [slow GPU]}\n"
                                   "  - {name: b, until: 1, largest_gpus: 16}\n");
    EXPECT_EQ(stage_at(set, 0.0).name, "a");
    EXPECT_EQ(stage_at(set, 0.2499).name, "a");
    EXPECT_EQ(stage_at(set, 0.25).name, "b");
    EXPECT_EQ(stage_at(set, 1.0).name, "b");
}

TEST(ScenarioSet, RejectsUnknownKeysAndEntriesWithTheirPlace) {
    EXPECT_THAT(error_of(with(kSmallSet, "count: 4", "counts: 4")), HasSubstr("small.yaml:1:1: count: missing"));
    EXPECT_THAT(error_of(with(kSmallSet, "nodes:", "node:")),
                AllOf(HasSubstr("small.yaml:5:"), HasSubstr("clusters.0")));
    EXPECT_THAT(error_of(with(kSmallSet, "severity:", "severty:")),
                AllOf(HasSubstr("small.yaml:9:"), HasSubstr("unknown key 'severty'"), HasSubstr("'severity'")));
    EXPECT_THAT(error_of(with(kSmallSet, "gpt3-1.3b", "gpt3-1.4b")),
                AllOf(HasSubstr("small.yaml:3:"), HasSubstr("gpt3-1.3b")));
}

TEST(ScenarioSet, RejectsWhatCannotBeDrawn) {
    EXPECT_THAT(
        error_of(with(kSmallSet, "speed_factor", "speed_facto")),
        AllOf(HasSubstr("small.yaml:9:17: families.0.causes.0.cause"), HasSubstr("did you mean 'speed_factor'?")));
    EXPECT_THAT(error_of(with(kSmallSet, "min: 0.4", "min: 0.95")),
                HasSubstr("0.95 is not allowed (at most max, 0.9)"));
    EXPECT_THAT(error_of(with(kSmallSet, "min: 0.4", "min: 0")), HasSubstr("more than 0"));
    EXPECT_THAT(error_of(with(kSmallSet, "speed_factor,", "speed_factor, on: uplink,")),
                HasSubstr("uplink is not allowed for speed_factor (own, gpu, worker"));
    EXPECT_THAT(error_of(with(kSmallSet, "speed_factor,", "speed_factor, start: {min: 0.5, max: 1.5},")),
                HasSubstr("1.5 is not allowed (0 to 1)"));
    EXPECT_THAT(error_of(with(kSmallSet, "[64]", "[]")), HasSubstr("nothing to draw from"));
    EXPECT_THAT(error_of(with(kSmallSet, "cause: speed_factor", "cause: gpu_loss, lasting: {min: 1 min, max: 2 min}")),
                HasSubstr("losses last until repaired"));
    EXPECT_THAT(error_of(std::string(kSmallSet) + "layout: {schedule: [interleaved]}\n"),
                HasSubstr("sets draw no virtual pipeline"));
}

TEST(ScenarioSet, RejectsStagesThatDoNotCoverTheTraining) {
    const std::string set = kSmallSet;
    EXPECT_THAT(error_of(set + "stages: [{name: a, until: 0.5}]\n"), HasSubstr("the last stage ends at 0.5"));
    EXPECT_THAT(error_of(set + "stages: [{name: a, until: 0.5}, {name: b, until: 0.5}]\n"),
                HasSubstr("stages.1.until: 0.5 is not allowed"));
    EXPECT_THAT(error_of(set + "stages: [{name: a, until: 1, families: [slow GPUs]}]\n"),
                AllOf(HasSubstr("no family 'slow GPUs'"), HasSubstr("did you mean 'slow GPU'?")));
    EXPECT_THAT(error_of(set + "stages: [{name: a, until: 1, largest_gpus: 8}]\n"),
                HasSubstr("every cluster is larger"));
}

TEST(ScenarioSet, RejectsNodesThatTheGroupsCannotShare) {
    EXPECT_THAT(error_of(with(kSmallSet, "cluster: selene, nodes: [2, 4]", "cluster: mixed-a100-h800, nodes: [3]")),
                HasSubstr("3 is not allowed (a multiple of the 2 node groups)"));
}

}  // namespace
}  // namespace headway::scenarios
