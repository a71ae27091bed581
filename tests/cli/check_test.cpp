#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cli/run_program.h"

namespace headway::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(Check, PrintsAScenarioThatReadsBackTheSame) {
    const TestFolder folder;
    folder.write("s.yaml", small_scenario("disturbances:\n- {start: 2 s, node_loss: {node: 1}}\n"));
    const ProgramResult first = folder.headway("check s.yaml");
    ASSERT_EQ(first.exit_code, 0) << first.err;
    EXPECT_THAT(first.err, IsEmpty());
    EXPECT_THAT(first.out, HasSubstr("stage 3: "));
    folder.write("again.yaml", first.out);
    const ProgramResult second = folder.headway("check again.yaml");
    EXPECT_EQ(second.exit_code, 0) << second.err;
    EXPECT_EQ(second.out, first.out);
    // And it means the same run.
    EXPECT_EQ(folder.headway("replay again.yaml --json").out, folder.headway("replay s.yaml --json").out);
}

struct BadScenario {
    std::string what;
    std::string arguments;  ///< further ones of the command line
    std::string message;
};

class BadInput : public ::testing::TestWithParam<BadScenario> {};

TEST_P(BadInput, IsOneMessageAndNoOutput) {
    const TestFolder folder;
    folder.write("s.yaml", small_scenario());
    folder.write("cut.csv", "time_s,factor\n0,1.0\n5,0.");
    for (const char* command : {"check", "replay"}) {
        const std::string out = command == std::string("replay") ? " --out r.jsonl" : "";
        const ProgramResult result = folder.headway(std::string(command) + " s.yaml " + GetParam().arguments + out);
        EXPECT_EQ(result.exit_code, 2) << result.err;
        EXPECT_THAT(result.out, IsEmpty());
        EXPECT_THAT(result.err, StartsWith("headway: "));
        EXPECT_THAT(result.err, HasSubstr(GetParam().message));
        EXPECT_FALSE(folder.has("r.jsonl"));
    }
}

INSTANTIATE_TEST_SUITE_P(
    Scenarios, BadInput,
    ::testing::Values(
        BadScenario{"UnknownKey", "--set strategy.pipline=4", "did you mean 'pipeline'?"},
        BadScenario{"WrongUnit", "--set 'cluster.node.pcie=25 furlongs'", "cluster.node.pcie"},
        BadScenario{"DegreesDoNotMultiply", "--set strategy.tensor=3", "tensor"},
        BadScenario{"HeadsNotDivisible", "--set job.model.heads=2 --set strategy.tensor=4 --set strategy.pipeline=2",
                    "heads"},
        BadScenario{"OverlappingPlacement", "--set 'strategy.placement=[0,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14]'",
                    "placement"},
        BadScenario{"EventOnAGpuThatDoesNotExist",
                    "--set 'disturbances=[{start: 1 s, airflow: {gpu: 99, resistance_factor: 2}}]'", "99"},
        BadScenario{"AirTooWarmForTheJob", "--set 'cluster.facility.inlet=95 C'", "cluster.facility.inlet: 95 C"},
        BadScenario{"SetWithoutAValue", "--set job.global_batch=", "a value is missing"},
        BadScenario{"MissingCsv", "--set 'disturbances=[{start: 1 s, speed_factor: {gpu: 1, series: no.csv}}]'",
                    "no.csv"},
        BadScenario{"TruncatedCsv", "--set 'disturbances=[{start: 1 s, speed_factor: {gpu: 1, series: cut.csv}}]'",
                    "cut.csv"},
        BadScenario{"PlanThatDoesNotFit",
                    "--set job.model.hidden=65536 --set job.model.heads=64 --set job.model.ffn=262144",
                    "stage 0 needs"},
        BadScenario{"UnknownPolicy", "--set policy=statc", "did you mean 'static'?"},
        BadScenario{"UnknownCatalogueEntry", "--set cluster.node.gpu=A100-SXM4-80G", "A100-SXM4-80GB"},
        BadScenario{"NotBuiltYet", "--set strategy.expert=4", "not built yet"}),
    [](const auto& instance) { return instance.param.what; });

}  // namespace
}  // namespace headway::tests
