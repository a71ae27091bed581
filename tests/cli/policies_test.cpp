#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/run_program.h"

/// Policies on the command line of `headway replay`.
namespace headway::tests {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const char* const kSlowGpu =
    "disturbances: [{start: 2 s, speed_factor: {gpu: 5, factor: 0.5}}]\nrun: {iterations: 100}\n";

std::string slowed() {
    std::string text = small_scenario();
    text.replace(text.find("run: {iterations: 60}\n"), std::string("run: {iterations: 60}\n").size(), kSlowGpu);
    return text;
}

json report_of(const TestFolder& folder, const std::string& arguments) {
    const ProgramResult result = folder.headway("replay s.yaml --json " + arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return json::parse(result.out);
}

TEST(ReplayPolicies, HelpAgainstASlowGpuAndSayWhatTheySpent) {
    const TestFolder folder;
    folder.write("s.yaml", slowed());
    const json nothing = report_of(folder, "");
    for (const char* policy : {"greedy", "hysteresis", "ski-rental", "oracle"}) {
        const json report = report_of(folder, std::string("--policy ") + policy);
        EXPECT_GT(report["goodput"], nothing["goodput"].get<double>() + 0.01) << policy;
        EXPECT_GT(report["switches"], 0) << policy;
        EXPECT_GT(report["recovery_s"]["switches"], 0.0) << policy;
        EXPECT_EQ(report["policy"], policy);
    }
    const ProgramResult text = folder.headway("replay s.yaml --policy greedy");
    EXPECT_THAT(text.out, HasSubstr(" which stood still for "));
}

TEST(ReplayPolicies, TakeParameters) {
    const TestFolder folder;
    folder.write("s.yaml", slowed());
    const json patient = report_of(folder, "--policy hysteresis:patience=1000");
    EXPECT_EQ(patient["switches"], 0);
    EXPECT_EQ(patient["policy"], "hysteresis:patience=1000");
}

TEST(ReplayPolicies, SayWhenNothingElseWasLegal) {
    const TestFolder folder;
    std::string text = slowed();
    const std::string strategy = "strategy: {tensor: 2, pipeline: 4, data: 2}\n";
    text.replace(text.find(strategy), strategy.size(),
                 "strategy: {tensor: 2, pipeline: 4, data: 2, adapt: {micro_batches: false, layers: false, "
                 "layers_apart: false, placement: false, degrees: false, drop: false}}\n");
    folder.write("s.yaml", text);
    const json report = report_of(folder, "--policy greedy");
    EXPECT_EQ(report["switches"], 0);
    EXPECT_EQ(report["decisions_without_choice"], report["decisions"]);
    EXPECT_THAT(folder.headway("replay s.yaml --policy greedy").out,
                HasSubstr("nothing else was legal, or worth offering, at any of them"));
}

TEST(ReplayPolicies, AskAShadowWithoutLettingItAct) {
    const TestFolder folder;
    folder.write("s.yaml", slowed());
    const json alone = report_of(folder, "");
    const json watched = report_of(folder, "--shadow greedy --out a.run.jsonl");
    EXPECT_EQ(watched["goodput"], alone["goodput"]);
    EXPECT_EQ(watched["switches"], 0);
    EXPECT_FALSE(alone.contains("shadow"));
    ASSERT_TRUE(watched.contains("shadow"));
    EXPECT_EQ(watched["shadow"]["policy"], "greedy");
    EXPECT_GT(watched["shadow"]["differs"], 0);
    EXPECT_LT(watched["shadow"]["regret_s"], 0.0) << "it would have saved time";
    std::istringstream lines(folder.read("a.run.jsonl"));
    int asked = 0;
    for (std::string line; std::getline(lines, line);) {
        const json object = json::parse(line);
        if (object["record"] != "decision") continue;
        EXPECT_EQ(object["shadow"]["policy"], "greedy");
        ++asked;
    }
    EXPECT_EQ(asked, watched["decisions"]);
    // The policy as its own shadow never differs.
    EXPECT_EQ(report_of(folder, "--policy greedy --shadow greedy")["shadow"]["differs"], 0);
}

TEST(ReplayPolicies, AreNamedWhenTheyAreUnknownOrWrong) {
    const TestFolder folder;
    folder.write("s.yaml", slowed());
    folder.write("broken.policy", "HEADWAYP and no more");
    struct Wrong {
        const char* arguments;
        const char* message;
    };
    for (const Wrong& wrong :
         {Wrong{"--policy gredy", "did you mean 'greedy'?"}, Wrong{"--shadow gredy", "--shadow gredy: "},
          Wrong{"--policy hysteresis:patience=none", "patience=none is not allowed"},
          Wrong{"--policy none.policy", "none.policy: "}, Wrong{"--policy broken.policy", "broken.policy: "},
          Wrong{"--no-guard everything", "everything"}}) {
        const ProgramResult result = folder.headway(std::string("replay s.yaml ") + wrong.arguments);
        EXPECT_EQ(result.exit_code, 2) << wrong.arguments;
        EXPECT_THAT(result.err, HasSubstr(wrong.message)) << wrong.arguments;
    }
}

TEST(ReplayPolicies, EvaluateRefusesAGuardThatDoesNotExist) {
    const TestFolder folder;
    folder.write("s.yaml", slowed());
    const ProgramResult result = folder.headway("evaluate greedy --on s.yaml --no-guard everything");
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr("everything"));
    EXPECT_EQ(folder.headway("evaluate greedy --on s.yaml --no-guard ood,rollback").exit_code, 0);
}

TEST(ReplayPolicies, AreAllListed) {
    const TestFolder folder;
    const json listing = json::parse(folder.headway("list policies --json").out);
    for (const char* policy : {"greedy", "hysteresis", "oracle", "random", "ski-rental", "static"}) {
        EXPECT_THAT(listing.dump(), HasSubstr(std::string("\"") + policy + "\""));
    }
}

}  // namespace
}  // namespace headway::tests
