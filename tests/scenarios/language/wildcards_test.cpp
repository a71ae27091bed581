#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/language/strategy.h"
#include "tests/scenarios/language/small_scenario.h"

namespace headway::scenarios {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Scenario again(const Scenario& scenario) {
    return parse_scenario(write_scenario(scenario), "again.yaml", "/nonexistent", Catalogue{"/nonexistent"});
}

TEST(Wildcards, EachKeyMayBeAutoAndReadsBackEqual) {
    const std::vector<std::pair<std::string, bool Wildcards::*>> keys{
        {"tensor", &Wildcards::tensor},          {"pipeline", &Wildcards::pipeline},
        {"context", &Wildcards::context},        {"virtual_pipeline", &Wildcards::virtual_pipeline},
        {"schedule", &Wildcards::schedule},      {"recompute", &Wildcards::recompute},
        {"micro_batch", &Wildcards::micro_batch}};
    for (const auto& [key, open] : keys) {
        SCOPED_TRACE(key);
        const Scenario scenario = read_small({{"strategy." + key, "auto"}});
        EXPECT_TRUE(scenario.strategy.wildcards.*open);
        EXPECT_THAT(write_scenario(scenario), HasSubstr("  " + key + ": auto\n"));
        EXPECT_TRUE(again(scenario) == scenario);
        EXPECT_THAT(describe(scenario.strategy.wildcards), HasSubstr(key));
        try {
            initial_plan(scenario.strategy, scenario.job, scenario.cluster);
            ADD_FAILURE() << "a plan of an open layout";
        } catch (const std::invalid_argument& error) {
            EXPECT_THAT(error.what(), HasSubstr(key));
        }
    }
}

TEST(Wildcards, DataIsOneOnlyBesideAnotherOpenDegree) {
    const Scenario resolved = read_small({{"strategy.recompute", "auto"}});
    EXPECT_FALSE(resolved.strategy.wildcards.data);
    EXPECT_EQ(resolved.strategy.layout.data, 2) << "what tensor and pipeline leave of 8 GPUs";
    for (const char* key : {"tensor", "pipeline", "context"}) {
        const Scenario open = read_small({{std::string("strategy.") + key, "auto"}});
        EXPECT_TRUE(open.strategy.wildcards.data);
        EXPECT_TRUE(again(open) == open);
        EXPECT_FALSE(
            read_small({{std::string("strategy.") + key, "auto"}, {"strategy.data", "2"}}).strategy.wildcards.data);
    }
    EXPECT_FALSE(read_small().strategy.wildcards.any());
}

TEST(Wildcards, WhatIsFixedIsStillChecked) {
    const auto error = [](std::vector<Override> more) {
        more.emplace_back("strategy.pipeline", "auto");
        return error_of(small_scenario(), more);
    };
    EXPECT_THAT(error({{"strategy.tensor", "5"}}), HasSubstr("strategy.tensor: 5 is not allowed"));
    EXPECT_THAT(error({{"strategy.tensor", "4"}, {"strategy.data", "4"}}),
                HasSubstr("the degrees that are not auto need more GPUs"));
    EXPECT_THAT(error({{"strategy.tensor", "1000000"}, {"strategy.data", "1000000"}, {"strategy.context", "1000000"}}),
                HasSubstr("need more GPUs"));
    EXPECT_THAT(error({{"strategy.layers_per_stage", "[5, 5]"}}), HasSubstr("a sum of 10 is not allowed"));
    EXPECT_THAT(error({{"job.global_batch", "15"}}), HasSubstr("job.global_batch"));
    EXPECT_THAT(error({{"strategy.schedule", "interleaved"}}), HasSubstr("virtual_pipeline is 1"));
    EXPECT_THAT(error({{"disturbances.1", "{start: 1 s, link_delay: {pipeline_hop: 0, delay: 1 ms}}"}}),
                HasSubstr("not allowed with strategy.pipeline: auto"));
    EXPECT_THAT(error({{"job.measured", "{workers: [{replica: 0, stage: 0, forward: 1 s, backward: 1 s}]}"}}),
                AllOf(HasSubstr("job.measured"), HasSubstr("not allowed with auto")));
    EXPECT_NO_THROW(read_small({{"strategy.pipeline", "auto"}, {"strategy.layers_per_stage", "[3, 3, 3, 3]"}}));
    EXPECT_NO_THROW(read_small({{"strategy.schedule", "auto"}, {"strategy.virtual_pipeline", "2"}}));
}

TEST(Wildcards, NothingElseIsAuto) {
    EXPECT_THAT(
        error_of(small_scenario(), {{"strategy.micro_batch", "4"}}),
        HasSubstr("strategy.micro_batch: 4 is not allowed (auto; a number of sequences goes into job.micro_batch)"));
    EXPECT_THAT(error_of(small_scenario(), {{"strategy.zero_bubble_memory", "auto"}}),
                HasSubstr("nothing chooses this one"));
    EXPECT_THAT(error_of(small_scenario(), {{"strategy.tensor", "automatic"}}), HasSubstr("strategy.tensor"));
}

TEST(Adapt, IsEverythingUnlessTheScenarioSaysOtherwise) {
    EXPECT_TRUE(read_small().strategy.adapt == Adapt());
    const std::vector<std::pair<std::string, bool Adapt::*>> keys{{"micro_batches", &Adapt::micro_batches},
                                                                  {"layers", &Adapt::layers},
                                                                  {"layers_apart", &Adapt::layers_apart},
                                                                  {"placement", &Adapt::placement},
                                                                  {"degrees", &Adapt::degrees},
                                                                  {"drop", &Adapt::drop},
                                                                  {"live", &Adapt::live}};
    for (const auto& [key, member] : keys) {
        const Scenario scenario = read_small({{"strategy.adapt." + key, "false"}});
        Adapt expected;
        expected.*member = false;
        EXPECT_TRUE(scenario.strategy.adapt == expected) << key;
        EXPECT_TRUE(again(scenario) == scenario) << key;
    }
    EXPECT_THAT(error_of(small_scenario(), {{"strategy.adapt", "{layer: false}"}}),
                AllOf(HasSubstr("unknown key 'layer' in strategy.adapt"), HasSubstr("layers")));
    EXPECT_THAT(error_of(small_scenario(), {{"strategy.adapt.drop", "maybe"}}),
                HasSubstr("strategy.adapt.drop: maybe is not allowed (true or false)"));
    EXPECT_THAT(error_of(small_scenario(), {{"strategy.adapt", "none"}}), HasSubstr("a map of keys is needed"));
}

TEST(SensorsAndSwitching, AreBoundedAndReadBackEqual) {
    const Scenario scenario = read_small({{"sensors", "{time_noise: 0.05, temperature_noise: 2, delay_intervals: 3}"},
                                          {"switching.time_factor", "1.5"}});
    EXPECT_DOUBLE_EQ(scenario.sensors.time_noise, 0.05);
    EXPECT_EQ(scenario.sensors.delay_intervals, 3);
    EXPECT_DOUBLE_EQ(scenario.switching.time_factor, 1.5);
    EXPECT_TRUE(again(scenario) == scenario);
    for (const auto& [key, value] :
         std::vector<std::pair<std::string, std::string>>{{"sensors.time_noise", "-0.1"},
                                                          {"sensors.time_noise", "1.1"},
                                                          {"sensors.temperature_noise", "-1"},
                                                          {"sensors.delay_intervals", "-1"},
                                                          {"sensors.delay_intervals", "0.5"},
                                                          {"switching.time_factor", "0"}})
        EXPECT_THAT(error_of(small_scenario(), {{key, value}}), HasSubstr(key + ": " + value + " is not allowed"));
}

TEST(Overrides, NeedAValue) {
    for (const char* value : {"", " "})
        EXPECT_THAT(error_of(small_scenario(), {{"job.micro_batch", value}}),
                    HasSubstr("a value is missing (--set KEY=VALUE"));
    EXPECT_EQ(read_small({{"description", "\"\""}}).description, "");
}

}  // namespace
}  // namespace headway::scenarios
