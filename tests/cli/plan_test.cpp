#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/cli/run_program.h"
#include "tests/paths.h"

namespace headway::tests {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

/// What the report tells to add to a command.
std::string options_to_run_the_best(const std::string& report) {
    const std::string kAnnounced = "add to any command:\n";
    const std::size_t begin = report.find(kAnnounced);
    if (begin == std::string::npos) return "";
    std::string options = report.substr(begin + kAnnounced.size());
    std::replace(options.begin(), options.end(), '\n', ' ');
    return options;
}

TEST(Plan, PrintsOneJsonObjectWithThePromisedKeys) {
    const TestFolder folder;
    folder.write("s.yaml", small_scenario());
    const ProgramResult result = folder.headway("plan s.yaml --top 4 --json");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, IsEmpty());
    const json report = json::parse(result.out);
    ASSERT_EQ(report["plans"].size(), 4u);
    double last = 0.0;
    int rank = 0;
    for (const json& plan : report["plans"]) {
        for (const char* key :
             {"rank", "layout", "iteration_s", "memory_gib", "why", "tokens_per_s", "mfu", "tensor", "pipeline", "data",
              "context", "schedule", "recompute", "layers_per_stage", "micro_batches_per_replica", "placement"})
            EXPECT_TRUE(plan.contains(key)) << key;
        EXPECT_EQ(plan["rank"], ++rank);
        EXPECT_GE(plan["iteration_s"].get<double>(), last);
        last = plan["iteration_s"];
        EXPECT_LE(plan["memory_gib"].get<double>(), plan["gpu_memory_gib"].get<double>());
        double shares = 0.0;
        for (const auto& [part, share] : plan["time_share"].items()) shares += share.get<double>();
        EXPECT_NEAR(shares, 1.0, 1e-9);
    }
    EXPECT_EQ(report["own"]["tensor"], 2);
    EXPECT_GE(report["own"]["iteration_s"].get<double>(), report["plans"][0]["iteration_s"].get<double>());
    EXPECT_TRUE(report["complete"].get<bool>());
    EXPECT_EQ(folder.headway("plan s.yaml --top 4 --json").out, result.out);
}

TEST(Plan, TellsHowToRunTheBestAndItRunsAsPlanned) {
    const TestFolder folder;
    folder.write("s.yaml", small_scenario());
    const ProgramResult text = folder.headway("plan s.yaml");
    ASSERT_EQ(text.exit_code, 0) << text.err;
    EXPECT_THAT(text.out, AllOf(HasSubstr("best layouts"), HasSubstr("\nown"), HasSubstr("more tokens a second")));
    const std::string options = options_to_run_the_best(text.out);
    ASSERT_THAT(options, HasSubstr("--set"));
    const json best = json::parse(folder.headway("plan s.yaml --json").out)["plans"][0];
    const ProgramResult run = folder.headway("replay s.yaml --json --iterations 5 " + options);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_NEAR(json::parse(run.out)["iteration_s"]["mean"].get<double>(), best["iteration_s"].get<double>(),
                0.01 * best["iteration_s"].get<double>());
    // There is nothing better than the best.
    EXPECT_THAT(folder.headway("plan s.yaml " + options).out, HasSubstr("Nothing is faster"));
}

TEST(Plan, LeavesOutWhatIsLostThen) {
    const TestFolder folder;
    folder.write("s.yaml", small_scenario("disturbances:\n- {name: away, start: 2 s, node_loss: {node: 1}}\n"));
    const json before = json::parse(folder.headway("plan s.yaml --json --at '1 s'").out);
    EXPECT_EQ(before["gpus"], 16);
    EXPECT_EQ(before["state"], "at 1 s: healthy");
    const ProgramResult result = folder.headway("plan s.yaml --json --at '3 s'");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const json after = json::parse(result.out);
    EXPECT_EQ(after["gpus"], 8);
    EXPECT_TRUE(after["own"].is_null());
    for (const json& plan : after["plans"]) EXPECT_LE(plan["gpus"].get<int>(), 8);
    EXPECT_THAT(folder.headway("plan s.yaml --at '3 s'").out, HasSubstr("uses GPU 8, which is lost"));
}

TEST(Plan, GivesASlowGpuLess) {
    const TestFolder folder;
    folder.write("s.yaml", small_scenario("disturbances:\n- {start: 2 s, co_tenant: {gpu: 5, compute_share: 0.5}}\n"));
    const std::string batch = " --set job.global_batch=512";
    const json healthy = json::parse(folder.headway("plan s.yaml --json" + batch).out);
    const json slow = json::parse(folder.headway("plan s.yaml --json --at '3 s'" + batch).out);
    const auto first = [](const json& report, const char* key) { return report["plans"][0][key].get<double>(); };
    EXPECT_GT(first(slow, "iteration_s"), first(healthy, "iteration_s"));
    // Half a GPU of sixteen is gone, not half of the job.
    EXPECT_LT(first(slow, "iteration_s"), 1.1 * first(healthy, "iteration_s"));
    const json& best = slow["plans"][0];
    ASSERT_EQ(best["data"], 16) << "a GPU a replica";
    std::size_t replica = 5;  // of GPU 5, unless the plan places it elsewhere
    for (std::size_t i = 0; i < best["placement"].size(); ++i) {
        if (best["placement"][i] == 5) replica = i;
    }
    EXPECT_EQ(best["micro_batches_per_replica"][replica], 10);  // of 16 on average
}

TEST(Plan, ChoosesOnlyWhatIsAuto) {
    const TestFolder folder;
    folder.write("s.yaml", small_scenario());
    const std::string open = " --set strategy.pipeline=auto --set strategy.data=auto --set strategy.micro_batch=auto";
    const json report = json::parse(folder.headway("plan s.yaml --json" + open).out);
    EXPECT_TRUE(report["own"].is_null());
    ASSERT_FALSE(report["plans"].empty());
    for (const json& plan : report["plans"]) {
        EXPECT_EQ(plan["tensor"], 2);
        EXPECT_EQ(plan["schedule"], "1f1b");
        EXPECT_EQ(plan["recompute"], "none");
    }
    const ProgramResult text = folder.headway("plan s.yaml" + open);
    const std::string options = options_to_run_the_best(text.out);
    const json run = json::parse(folder.headway("replay s.yaml --json --iterations 5" + open + " " + options).out);
    const double best = report["plans"][0]["iteration_s"];
    EXPECT_NEAR(run["iteration_s"]["mean"].get<double>(), best, 0.01 * best);
}

TEST(Plan, CheckAndReplayPutTheBestPlanInPlaceOfAuto) {
    const TestFolder folder;
    folder.write("s.yaml", small_scenario());
    const std::string open =
        " --set strategy.tensor=auto --set strategy.pipeline=auto --set strategy.data=auto --set "
        "strategy.schedule=auto";
    const json best = json::parse(folder.headway("plan s.yaml --json" + open).out)["plans"][0];
    const ProgramResult check = folder.headway("check s.yaml" + open);
    ASSERT_EQ(check.exit_code, 0) << check.err;
    EXPECT_THAT(check.err, AllOf(StartsWith("headway: auto (tensor, pipeline, data, schedule) is "),
                                 HasSubstr(best["layout"].get<std::string>())));
    folder.write("resolved.yaml", check.out);
    EXPECT_THAT(folder.headway("check resolved.yaml").err, IsEmpty());
    const ProgramResult replay = folder.headway("replay s.yaml --json --out r.jsonl --iterations 5" + open);
    ASSERT_EQ(replay.exit_code, 0) << replay.err;
    EXPECT_EQ(folder.headway("replay resolved.yaml --json --iterations 5").out, replay.out);
    EXPECT_THAT(folder.read("r.jsonl"), Not(HasSubstr(": auto")));
}

TEST(Plan, SaysWhatIsMissingWhenNothingFits) {
    const TestFolder folder;
    folder.write("s.yaml", small_scenario());
    const ProgramResult result = folder.headway(
        "plan s.yaml --set job.model.hidden=65536 --set job.model.heads=64 --set job.model.ffn=262144 "
        "--set job.model.layers=200");
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.out, IsEmpty());
    EXPECT_THAT(result.err, AllOf(StartsWith("headway: s.yaml"), HasSubstr("legal layouts fits in memory; the closest"),
                                  HasSubstr("GiB on stage")));
}

struct WrongUse {
    std::string arguments;
    std::string message;
};

TEST(Plan, RefusesWrongArguments) {
    const TestFolder folder;
    folder.write("s.yaml", small_scenario());
    for (const WrongUse& wrong :
         {WrongUse{"plan s.yaml --at 5", "--at 5: is not allowed (a time such as"},
          WrongUse{"plan s.yaml --at '-5 s'", "--at -5 s: is not allowed"}, WrongUse{"plan s.yaml --top 0", "--top"},
          WrongUse{"plan s.yaml --tpo 3", "did you mean '--top'?"}, WrongUse{"plan nothing.yaml", "nothing.yaml"}}) {
        const ProgramResult result = folder.headway(wrong.arguments);
        EXPECT_EQ(result.exit_code, 2) << wrong.arguments;
        EXPECT_THAT(result.out, IsEmpty());
        EXPECT_THAT(result.err, HasSubstr(wrong.message));
    }
}

TEST(Plan, CtrlCEndsTheSearch) {
    const TestFolder folder;
    const std::string scenario = (source_directory() / "scenarios" / "gpt3-175b-1024.yaml").string();
    // The search of so large a cluster takes seconds; the signal comes while it reads or searches.
    const ProgramResult result =
        folder.headway("plan '" + scenario + "' --top 1000 --set cluster.nodes=2048 --set strategy.data=128",
                       "& sleep 0.8; kill -INT $!; wait $!");
    EXPECT_EQ(result.exit_code, 130);
    EXPECT_THAT(result.err, HasSubstr("interrupted"));
}

}  // namespace
}  // namespace headway::tests
