#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/scenarios/language/small_scenario.h"

namespace headway::scenarios {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// ---- text
// ------------------------------------------------------------------------------------------------------------

TEST(BadText, IsReportedWithFileLineAndColumn) {
    EXPECT_THAT(error_of(""), StartsWith("small.yaml:1:1: the file is empty"));
    EXPECT_THAT(error_of("# only a comment\n"), StartsWith("small.yaml:1:1: the file is empty"));
    EXPECT_THAT(error_of("- 1\n- 2\n"), StartsWith("small.yaml:1:1: a scenario must be a map of keys, not a list"));
    EXPECT_THAT(error_of("job: {model: gpt2-124m\n"), StartsWith("small.yaml:2:1: not valid YAML: "));
    EXPECT_THAT(error_of("job:\n\tmodel: x\n"), StartsWith("small.yaml:2:7: not valid YAML: "));
    EXPECT_THAT(error_of(small_scenario() + "---\nname: second\n"),
                AllOf(StartsWith("small.yaml:"), HasSubstr("a second document is not allowed")));
    EXPECT_THAT(error_of(std::string("name: a\0b\n", 10)), StartsWith("small.yaml:1:1: a zero byte is not allowed"));
}

TEST(BadText, RejectsAnchorsAliasesAndTags) {
    EXPECT_THAT(error_of("job: &a {x: 1}\n"), StartsWith("small.yaml:1:6: anchors and aliases are not allowed"));
    EXPECT_THAT(error_of("a: &x [1, 1]\nb: [*x, *x, *x, *x]\n"), HasSubstr("anchors and aliases are not allowed"));
    EXPECT_THAT(error_of("seed: !!int 4\n"), AllOf(StartsWith("small.yaml:1:"), HasSubstr("tag ")));
}

TEST(BadText, RejectsDeepNestingBeforeItExhaustsTheStack) {
    EXPECT_THAT(error_of("job: " + std::string(100'000, '[')), HasSubstr("nested too deeply (at most 40 levels)"));
    EXPECT_THAT(error_of("job: " + std::string(100'000, '{')), HasSubstr("nested too deeply (at most 40 levels)"));
    std::string steps;
    for (int level = 0; level < 200; ++level) steps += std::string(static_cast<std::size_t>(level), ' ') + "a:\n";
    EXPECT_THAT(error_of(steps), HasSubstr("nested too deeply (at most 40 levels)"));
}

TEST(BadText, RejectsDuplicateKeysAndNamesTheFirst) {
    EXPECT_THAT(error_of(small_scenario() + "seed: 1\nseed: 2\n"),
                HasSubstr("key 'seed' is given twice (first in line "));
}

// ---- keys
// ------------------------------------------------------------------------------------------------------------

TEST(Keys, RejectsUnknownKeyWithLineNumberAndTheNearestKnownKey) {
    const std::string text = small_with("tensor: 2", "tensor: 2\n  pipline: 2");
    EXPECT_EQ(error_of(text), "small.yaml:" + std::to_string(line_of(text, "pipline")) +
                                  ":3: unknown key 'pipline' in strategy (did you mean 'pipeline'?)");
}

TEST(Keys, ListsTheAllowedKeysWhereNoneIsNear) {
    EXPECT_THAT(
        error_of(small_with("tensor: 2", "tensor: 2\n  overlap: {everything: true}")),
        HasSubstr(
            "unknown key 'everything' in strategy.overlap (allowed: grad_reduce, param_gather, tensor, pipeline)"));
}

TEST(Keys, NamesTheMissingOne) {
    EXPECT_THAT(error_of(small_with("  global_batch: 16\n", "")),
                AllOf(StartsWith("small.yaml:"), HasSubstr("job.global_batch: missing")));
    EXPECT_THAT(error_of("name: x\n"), StartsWith("small.yaml:1:1: job: missing"));
}

TEST(Keys, RejectsWhatIsNotAMap) {
    EXPECT_THAT(error_of("job: 3\n"), StartsWith("small.yaml:1:6: job: a map of keys is needed, not 3"));
    EXPECT_THAT(error_of("job: [1]\n"), StartsWith("small.yaml:1:6: job: a map of keys is needed, not a list"));
    EXPECT_THAT(error_of("job:\n"), StartsWith("small.yaml:1:1: job: a map of keys is needed, not nothing"));
}

// ---- values
// ----------------------------------------------------------------------------------------------------------

TEST(Values, AreRejectedWithPlaceKeyValueAndWhatIsAllowed) {
    const std::string text = small_with("micro_batch: 2", "micro_batch: 0");
    EXPECT_EQ(error_of(text), "small.yaml:" + std::to_string(line_of(text, "micro_batch")) +
                                  ":16: job.micro_batch: 0 is not allowed (1 to 1000000)");
    EXPECT_THAT(error_of(small_with("micro_batch: 2", "micro_batch: two")),
                HasSubstr("job.micro_batch: two is not allowed (a whole number, 1 to 1000000)"));
    EXPECT_THAT(error_of(small_with("micro_batch: 2", "micro_batch: 2.5")),
                HasSubstr("job.micro_batch: 2.5 is not allowed"));
    EXPECT_THAT(error_of(small_with("micro_batch: 2", "micro_batch: [2]")),
                HasSubstr("job.micro_batch: a list is not allowed"));
    EXPECT_THAT(error_of(small_with("micro_batch: 2", "micro_batch:")),
                HasSubstr("job.micro_batch: nothing is not allowed"));
}

TEST(Values, DoNotOverflow) {
    for (const char* number :
         {"99999999999999999999", "2147483648", "9223372036854775808", "-9223372036854775809", "1e300"}) {
        EXPECT_THAT(error_of(small_with("micro_batch: 2", std::string("micro_batch: ") + number)),
                    HasSubstr("job.micro_batch: " + std::string(number) + " is not allowed"))
            << number;
    }
    EXPECT_THAT(error_of(small_with("seed: 7", "seed: 18446744073709551616")),
                HasSubstr("seed: 18446744073709551616 is not allowed"));
    EXPECT_THAT(error_of(small_with("seed: 7", "seed: -1")), HasSubstr("seed: -1 is not allowed"));
}

TEST(Values, AreFiniteNumbers) {
    for (const char* number : {".nan", "nan", ".inf", "-.inf", "inf", "1e999", "0x10", "1.5.0"}) {
        EXPECT_THAT(error_of(small_with("spread: 0.1", std::string("spread: ") + number)),
                    HasSubstr("jitter.spread: " + std::string(number) + " is not allowed"))
            << number;
    }
}

TEST(Values, OfEnumerationsNameAllWords) {
    EXPECT_THAT(error_of(small_with("tensor: 2", "tensor: 2\n  schedule: 2f2b")),
                HasSubstr("strategy.schedule: 2f2b is not allowed (gpipe, 1f1b, interleaved, zero-bubble)"));
    EXPECT_THAT(error_of(small_with("precision: bf16", "precision: fp64")),
                HasSubstr("job.precision: fp64 is not allowed (fp16, bf16, fp8, fp32)"));
    EXPECT_THAT(error_of(small_with("tensor: 2", "tensor: 2\n  sequence_parallel: yes")),
                HasSubstr("strategy.sequence_parallel: yes is not allowed (true or false)"));
}

TEST(Quantities, NeedAUnitOfTheirKind) {
    EXPECT_THAT(
        error_of(small_with("start: 5 s", "start: 5")),
        HasSubstr("disturbances.0.start: 5 is not allowed (a time such as 30 min; units: d, h, min, s, ms, us, ns"));
    EXPECT_THAT(error_of(small_with("start: 5 s", "start: 5 GB")),
                HasSubstr("disturbances.0.start: 5 GB is not allowed (a time"));
    EXPECT_THAT(error_of(small_with("start: 5 s", "start: -5 s")),
                HasSubstr("disturbances.0.start: -5 s is not allowed (at least 0)"));
    EXPECT_THAT(error_of(small_with("start: 5 s", "start: 1e30 h")),
                HasSubstr("disturbances.0.start: 1e30 h is not allowed (a time"));
    EXPECT_THAT(error_of(small_with("seed: 7", "seed: 7\ntelemetry_period: 0 s")),
                HasSubstr("telemetry_period: 0 s is not allowed (more than 0)"));
    EXPECT_THAT(error_of(small_scenario(), {{"cluster.node.pcie", "25 Gb"}}),
                HasSubstr("cluster.node.pcie: 25 Gb is not allowed (a bandwidth such as 25 GB/s; units:"));
    EXPECT_THAT(error_of(small_scenario(), {{"cluster.node.gpu.memory", "80"}}),
                HasSubstr("cluster.node.gpu.memory: 80 is not allowed (an amount of data such as 80 GiB; units:"));
    EXPECT_THAT(error_of(small_scenario(), {{"cluster.node.gpu.power_limit", "400"}}),
                HasSubstr("(a power such as 400 W; units: W, kW)"));
    EXPECT_THAT(error_of(small_scenario(), {{"cluster.facility.inlet", "35"}}),
                HasSubstr("(a temperature such as 35 C; unit: C)"));
    EXPECT_THAT(error_of(small_scenario(), {{"cluster.node.gpu.boost_clock", "1410"}}),
                HasSubstr("(a clock such as 1410 MHz; units: MHz, GHz)"));
    EXPECT_THAT(error_of(small_scenario(), {{"cluster.node.gpu.thermal.slow_resistance", "0.049"}}),
                HasSubstr("(a thermal resistance such as 0.049 K/W; unit: K/W)"));
}

// ---- what nothing builds yet
// -------------------------------------------------------------------------------------------

TEST(NotBuilt, IsSaidForWhatTheVocabularyOnlyNames) {
    for (const auto& [key, words] : std::vector<std::pair<std::string, std::string>>{
             {"expert: 2", "expert parallelism is not built yet"},
             {"fully_sharded: true", "(ZeRO-2, ZeRO-3, FSDP) are not built yet"},
             {"compression: {data: int8}", "compression of communication is not built yet"},
             {"tiering: {optimizer: host}", "is not built yet"}}) {
        EXPECT_THAT(error_of(small_with("tensor: 2", "tensor: 2\n  " + key)),
                    AllOf(StartsWith("small.yaml:"), HasSubstr(words)));
    }
    EXPECT_THAT(error_of(small_with("micro_batch: 2", "micro_batch: auto")),
                HasSubstr("job.micro_batch: auto is not allowed"));
    EXPECT_THAT(error_of(small_with("micro_batch: 2", "micro_batch: auto")), HasSubstr("nothing chooses this one"));
}

// ---- overrides
// ---------------------------------------------------------------------------------------------------------

TEST(Overrides, ReachEveryKeyAndListItem) {
    const Scenario scenario = read_small({{"disturbances.0.start", "5 min"},
                                          {"job.model.layers", "8"},
                                          {"cluster.node.gpu.power_limit", "300 W"},
                                          {"cluster.facility.inlet", "31 C"},
                                          {"seed", "9"}});
    EXPECT_EQ(scenario.disturbances[0].start, Duration::seconds(300));
    EXPECT_EQ(scenario.job.model.layers, 8);
    EXPECT_EQ(scenario.job.model.name, "gpt2-124m");
    EXPECT_EQ(scenario.cluster.node(0).gpu.power_limit.value, 300.0);
    EXPECT_EQ(scenario.cluster.facility.inlet.value, 31.0);
    EXPECT_EQ(scenario.seed, 9u);
}

TEST(Overrides, ReplaceWholeSectionsAndAddListItems) {
    const Scenario scenario =
        read_small({{"disturbances.1", "{start: 8 s, gpu_loss: {gpu: 1}}"}, {"strategy.layers_per_stage", "[5, 7]"}});
    ASSERT_EQ(scenario.disturbances.size(), 2u);
    EXPECT_EQ(scenario.disturbances[1].name, "loss of GPU 1");
    EXPECT_EQ(scenario.strategy.layers_per_stage, (std::vector<int>{5, 7}));
}

TEST(Overrides, ReachIntoAResolvedScenario) {
    const std::string resolved = write_scenario(read_small());
    const Scenario scenario = parse_scenario(resolved, "resolved.yaml", ".", Catalogue{"/nonexistent"},
                                             {{"cluster.node_groups.0.node.gpu.power_limit", "250 W"}});
    EXPECT_EQ(scenario.cluster.node(0).gpu.power_limit.value, 250.0);
}

TEST(Overrides, AreNamedInErrors) {
    EXPECT_EQ(error_of(small_scenario(), {{"job.micro_batch", "0"}}),
              "--set job.micro_batch=0: job.micro_batch: 0 is not allowed (1 to 1000000)");
    EXPECT_EQ(error_of(small_scenario(), {{"job.micro_bach", "1"}}),
              "--set job.micro_bach=1: unknown key 'micro_bach' in job (did you mean 'micro_batch'?)");
    EXPECT_THAT(
        error_of(small_scenario(), {{"disturbances.7.start", "1 s"}}),
        StartsWith("--set disturbances.7.start=1 s: '7' is not an item of this list (it has 1, counted from 0)"));
    EXPECT_THAT(error_of(small_scenario(), {{"seed.deep", "1"}}),
                StartsWith("--set seed.deep=1: seed.deep: the scenario has no such section or list item"));
    EXPECT_THAT(error_of(small_scenario(), {{"a..b", "1"}}), StartsWith("--set a..b=1: the key must be a path"));
    EXPECT_THAT(error_of(small_scenario(), {{"seed", "[1"}}), StartsWith("--set seed=[1:1:"));
    EXPECT_THAT(error_of(small_scenario(), {{"job.model", "gpt2-124"}}),
                AllOf(StartsWith("--set job.model=gpt2-124: "), HasSubstr("did you mean 'gpt2-124m'?")));
}

// ---- files
// -------------------------------------------------------------------------------------------------------------

TEST(Files, ThatCannotBeReadAreNamed) {
    EXPECT_THAT(error_of_file("/nonexistent/x.yaml"), HasSubstr("/nonexistent/x.yaml: no such file"));
    EXPECT_THAT(error_of_file(std::filesystem::temp_directory_path()), HasSubstr("this is a folder, not a file"));
}

TEST(Places, TellWhereAKeyStoodForErrorsFoundLater) {
    KeyPlaces places;
    const std::string text = small_scenario();
    parse_scenario(text, "small.yaml", ".", shipped(), {}, &places);
    EXPECT_EQ(places.at("strategy"), "small.yaml:" + std::to_string(line_of(text, "tensor: 2")) + ":3");
    EXPECT_EQ(places.at("strategy.recompute"), places.at("strategy"));
    EXPECT_EQ(std::string(places.error("strategy", "stage 3 does not fit").what()),
              places.at("strategy") + ": strategy: stage 3 does not fit");
}

}  // namespace
}  // namespace headway::scenarios
