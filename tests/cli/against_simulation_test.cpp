#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "tests/cli/run_program.h"

namespace headway::tests {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const char* const kSlowedLater = R"(
disturbances:
  - {name: GPU 3 is slow, start: 2 s, speed_factor: {gpu: 3, factor: 0.5}}
decision_interval: 5
)";

TEST(AgainstSimulation, ASimulatedRunIsPredictedExactlyThroughItsSwitches) {
    const TestFolder folder;
    folder.write("slow.yaml", small_scenario(kSlowedLater));
    ASSERT_EQ(folder.headway("replay slow.yaml --policy greedy --out run.run.jsonl").exit_code, 0);
    const ProgramResult result = folder.headway("compare run.run.jsonl --against-simulation --json");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const json report = json::parse(result.out);
    EXPECT_EQ(report.at("iterations"), 60);
    EXPECT_EQ(report.at("mean_error"), 0.0);
    EXPECT_GE(report.at("pauses").size(), 1u) << "greedy was to find a better split";
    ASSERT_GE(report.at("segments").size(), 3u) << "the first plan, another, and that with the slow GPU";
    EXPECT_EQ(report["segments"][0]["disturbances"].size(), 0u);
    EXPECT_EQ(report["segments"][2]["disturbances"][0], "GPU 3 is slow");
    std::int64_t counted = report.at("changing_iterations");
    for (const json& segment : report["segments"]) counted += segment.at("iterations").get<std::int64_t>();
    EXPECT_EQ(counted, 60);
}

TEST(AgainstSimulation, ARunThatTookLongerThanSimulatedIsSaidSo) {
    const TestFolder folder;
    folder.write("run.yaml", small_scenario());
    ASSERT_EQ(folder.headway("replay run.yaml --iterations 10 --out run.run.jsonl").exit_code, 0);
    // The same run with every iteration twice as long: a machine slower than its description.
    const std::string text = folder.read("run.run.jsonl");
    const std::regex duration(R"(("record":"iteration",.*?"duration_ns":)(\d+))");
    std::string slowed;
    auto from = text.cbegin();
    for (std::sregex_iterator match(text.begin(), text.end(), duration), none; match != none; ++match) {
        slowed.append(from, match->operator[](0).first);
        slowed += match->str(1) + std::to_string(2 * std::stoll(match->str(2)));
        from = match->operator[](0).second;
    }
    slowed.append(from, text.cend());
    folder.write("slowed.run.jsonl", slowed);
    const ProgramResult result = folder.headway("compare slowed.run.jsonl --against-simulation --json");
    const json report = json::parse(result.out);
    EXPECT_NEAR(report.at("mean_error").get<double>(), 0.5, 1e-9);
    EXPECT_NEAR(report.at("segments").at(0).at("error").get<double>(), -0.5, 1e-9);
}

TEST(AgainstSimulation, SaysWhatItCannotCompare) {
    const TestFolder folder;
    folder.write("run.yaml", small_scenario());
    ASSERT_EQ(folder.headway("replay run.yaml --iterations 3 --out thin.run.jsonl --level decisions").exit_code, 0);
    const auto error_of = [&](const std::string& arguments) {
        const ProgramResult result = folder.headway(arguments);
        EXPECT_EQ(result.exit_code, 2) << arguments;
        return result.err;
    };
    EXPECT_THAT(error_of("compare thin.run.jsonl --against-simulation"),
                HasSubstr("thin.run.jsonl: has no iterations"));
    EXPECT_THAT(error_of("compare run.yaml --against-simulation"), HasSubstr("run.yaml"));
    EXPECT_THAT(error_of("compare thin.run.jsonl"), HasSubstr("--against-simulation"));
    EXPECT_THAT(error_of("compare thin.run.jsonl thin.run.jsonl --against-simulation"), HasSubstr("not both"));
}

}  // namespace
}  // namespace headway::tests
