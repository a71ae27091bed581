#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "scenarios/record/run_reader.h"
#include "tests/cli/run_program.h"
#include "tests/paths.h"

namespace headway::tests {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const char* const kTwoScenarios = R"(name: small
count: 2
jobs: [{model: gpt3-1.3b, stack: megatron-lm-2022, global_batch: [64]}]
clusters: [{cluster: selene, nodes: [2]}]
layout: {compared: 2}
families:
  - name: slow GPU
    causes: [{cause: speed_factor, severity: {min: 0.4, max: 0.6}, start: {min: 0.05, max: 0.1}}]
run: {shortest: 8 min, mean: 8 min, longest: 8 min}
)";

TEST(Evaluate, PrintsThePromisedJson) {
    const TestFolder folder;
    folder.write("small.yaml", kTwoScenarios);
    folder.write("one.yaml", small_scenario());
    const ProgramResult result = folder.headway("evaluate greedy static --on . --json");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const json report = json::parse(result.out);
    EXPECT_EQ(report.at("complete"), true);
    ASSERT_EQ(report.at("policies").size(), 2u) << "static is there once, and first";
    EXPECT_EQ(report["policies"][0].at("policy"), "static");
    EXPECT_EQ(report["policies"][1].at("policy"), "greedy");
    for (const json& policy : report["policies"]) {
        for (const char* key : {"goodput", "recovered_share", "lost_fraction", "switches", "families"})
            EXPECT_TRUE(policy.contains(key)) << key;
        EXPECT_TRUE(policy["recovered_share"].is_null()) << "nobody asked for the oracle";
        EXPECT_TRUE(policy["families"].contains("slow GPU"));
        EXPECT_TRUE(policy["families"].contains("single scenarios"));
    }
    EXPECT_EQ(report["policies"][0]["lost_fraction"], 0.0);
    ASSERT_EQ(report.at("scenarios").size(), 3u);
    double sum = 0.0;
    for (const json& scenario : report["scenarios"])
        sum += scenario.at("policies").at("static").at("goodput").get<double>();
    EXPECT_NEAR(report["policies"][0]["goodput"].get<double>(), sum / 3.0, 1e-12);
    EXPECT_LT(report["policies"][0]["families"]["slow GPU"]["goodput"].get<double>(), 0.95);
}

TEST(Evaluate, WritesARecordOfWhatItReports) {
    const TestFolder folder;
    folder.write("small.yaml", kTwoScenarios);
    const ProgramResult result = folder.headway("evaluate greedy --on small.yaml --out evaluated.run.jsonl --json");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const json report = json::parse(result.out);
    std::vector<scenarios::EvaluationEvent> events;
    struct Listener final : scenarios::RunSink {
        explicit Listener(std::vector<scenarios::EvaluationEvent>& all) : all_(all) {}
        void evaluation(const scenarios::EvaluationEvent& event) override { all_.push_back(event); }
        std::vector<scenarios::EvaluationEvent>& all_;
    } listener(events);
    const scenarios::RecordStatus read = scenarios::read_record(folder.path() / "evaluated.run.jsonl", listener);
    EXPECT_EQ(read.state, scenarios::RecordStatus::State::kComplete) << read.problem;
    ASSERT_EQ(events.size(), 2u * (1 + 1 + 2)) << "two policies: all, one family, two scenarios";
    EXPECT_EQ(events[4].policy, "greedy");
    EXPECT_EQ(events[4].scenario, "");
    EXPECT_EQ(events[4].goodput, report["policies"][1]["goodput"].get<double>());
    EXPECT_EQ(events[7].scenario, report["scenarios"][1]["name"]);
    EXPECT_EQ(events[7].goodput, report["scenarios"][1]["policies"]["greedy"]["goodput"].get<double>());
    const ProgramResult again = folder.headway("evaluate greedy --on small.yaml --out evaluated.run.jsonl");
    EXPECT_EQ(again.exit_code, 2);
    EXPECT_THAT(again.err, HasSubstr("--force"));
}

TEST(Evaluate, GivesTheSameBytesHoweverManyWorkersRun) {
    const TestFolder folder;
    folder.write("small.yaml", kTwoScenarios);
    const std::string command = "evaluate greedy hysteresis --on small.yaml --seeds 2 --json";
    const ProgramResult one = folder.headway(command + " --workers 1");
    const ProgramResult many = folder.headway(command + " --workers 5");
    ASSERT_EQ(one.exit_code, 0) << one.err;
    EXPECT_EQ(one.out, many.out);
    EXPECT_THAT(one.out, HasSubstr("\"seeds\":2"));
}

TEST(Evaluate, ReproducesTheTableAtSmallScale) {
    const TestFolder folder;
    const std::string held_out = "'" + (source_directory() / "scenarios/heldout/dedicated.yaml").string() + "'";
    const std::string command = "evaluate greedy hysteresis --limit 2 --on " + held_out;
    const ProgramResult table = folder.headway(command);
    ASSERT_EQ(table.exit_code, 0) << table.err;
    EXPECT_THAT(table.out, AllOf(HasSubstr("2 scenarios"), HasSubstr("hysteresis"), HasSubstr("recovered"),
                                 HasSubstr("goodput by family"), HasSubstr("greedy - static")));
    EXPECT_EQ(folder.headway(command).out, table.out);
}

TEST(Evaluate, NamesWhatItCannotRunBeforeItRunsAnything) {
    const TestFolder folder;
    folder.write("small.yaml", kTwoScenarios);
    const auto error_of = [&](const std::string& arguments) {
        const ProgramResult result = folder.headway("evaluate " + arguments);
        EXPECT_EQ(result.exit_code, 2) << arguments << ": " << result.err;
        EXPECT_THAT(result.out, IsEmpty());
        return result.err;
    };
    EXPECT_THAT(error_of("gredy --on small.yaml"), AllOf(HasSubstr("gredy"), HasSubstr("greedy")));
    EXPECT_THAT(error_of("none.policy --on small.yaml"), HasSubstr("none.policy"));
    EXPECT_THAT(error_of("greedy --on nowhere.yaml"), HasSubstr("nowhere.yaml"));
    EXPECT_THAT(error_of("greedy --on small.yaml small.yaml"), HasSubstr("two scenarios are called 'small 0'"));
    folder.write("bad.yaml", "count: 1\nfamilies: []\n");
    EXPECT_THAT(error_of("greedy --on bad.yaml"), HasSubstr("bad.yaml:1:1"));
}

}  // namespace
}  // namespace headway::tests
