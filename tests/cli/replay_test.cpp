#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/run_program.h"
#include "tests/paths.h"

namespace headway::tests {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const char* const kDisturbed = R"(disturbances:
- {name: hot, start: 2 s, duration: 5 s, airflow: {gpu: 3, resistance_factor: 8}}
- {name: neighbour, start: 3 s, co_tenant: {gpu: 5, compute_share: 0.4}}
- {name: wobble, start: 0 s, jitter: {spread: 0.05}}
)";

/// The lines of a record without the one that says who made it, when and where.
std::string comparable(const std::string& record) {
    std::istringstream lines(record);
    std::string line, kept;
    int left_out = 0;
    while (std::getline(lines, line)) {
        if (line.find("\"record\":\"provenance\"") != std::string::npos) {
            ++left_out;
            continue;
        }
        kept += line + "\n";
    }
    EXPECT_EQ(left_out, 1);
    return kept;
}

TEST(Replay, WritesRegularFilesOnly) {
    const TestFolder folder;
    folder.write("s.yaml", small_scenario());
    ASSERT_EQ(std::system(("mkfifo '" + (folder.path() / "pipe").string() + "'").c_str()), 0);
    for (const char* option : {"--out", "--trace"}) {
        const ProgramResult pipe = folder.headway("replay s.yaml --force " + std::string(option) + " pipe");
        EXPECT_EQ(pipe.exit_code, 2);
        EXPECT_THAT(pipe.err, HasSubstr("pipe: is no regular file"));
        const ProgramResult nameless = folder.headway("replay s.yaml " + std::string(option) + " ''");
        EXPECT_EQ(nameless.exit_code, 2) << nameless.err;
        EXPECT_THAT(nameless.err, HasSubstr(option));
    }
}

TEST(Replay, PrintsOneJsonObjectWithThePromisedKeys) {
    const TestFolder folder;
    folder.write("s.yaml", small_scenario(kDisturbed));
    const ProgramResult result = folder.headway("replay s.yaml --json");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, IsEmpty());
    const json report = json::parse(result.out);
    for (const char* key : {"scenario", "policy", "seed", "iterations", "iteration_s", "tokens_per_s", "tflops_per_gpu",
                            "mfu", "goodput", "time_share", "disturbances", "decisions", "switches"}) {
        EXPECT_TRUE(report.contains(key)) << key;
    }
    for (const char* key : {"mean", "p50", "p95"}) EXPECT_GT(report["iteration_s"].at(key), 0.0) << key;
    EXPECT_EQ(report["scenario"], "small");
    EXPECT_EQ(report["iterations"], 60);
    EXPECT_EQ(report["disturbances"].size(), 3u);
    double share = 0.0;
    for (const auto& part : report["time_share"]) share += part.get<double>();
    EXPECT_NEAR(share, 1.0, 1e-6);
    EXPECT_GT(report["goodput"], 0.2);
    EXPECT_LT(report["goodput"], 1.0);
}

TEST(Replay, ReportsForPeopleAndShowsNoBarWhereNoTerminalIs) {
    const TestFolder folder;
    folder.write("s.yaml", small_scenario());
    const ProgramResult result = folder.headway("replay s.yaml");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, IsEmpty());
    EXPECT_THAT(result.out, HasSubstr("MFU"));
    EXPECT_THAT(result.out, Not(HasSubstr("\033")));
}

TEST(Replay, GivesTheSameBytesInEveryProcess) {
    const TestFolder folder;
    folder.write("s.yaml", small_scenario(kDisturbed));
    const ProgramResult first =
        folder.headway("replay s.yaml --json --seed 3 --out a.run.jsonl --level operations --trace a.json");
    const ProgramResult second =
        folder.headway("replay s.yaml --json --seed 3 --out b.run.jsonl --level operations --trace b.json");
    ASSERT_EQ(first.exit_code, 0) << first.err;
    ASSERT_EQ(second.exit_code, 0) << second.err;
    EXPECT_EQ(first.out, second.out);
    EXPECT_EQ(comparable(folder.read("a.run.jsonl")), comparable(folder.read("b.run.jsonl")));
    EXPECT_EQ(folder.read("a.json"), folder.read("b.json"));
    EXPECT_TRUE(json::accept(folder.read("a.json")));
    const ProgramResult other_seed = folder.headway("replay s.yaml --json --seed 4");
    EXPECT_NE(other_seed.out, first.out);
}

TEST(Replay, RepeatsSeedsInOrderHoweverManyRunAtOnce) {
    const TestFolder folder;
    folder.write("s.yaml", small_scenario(kDisturbed));
    const ProgramResult all = folder.headway("replay s.yaml --json --seed 5 --seeds 3");
    ASSERT_EQ(all.exit_code, 0) << all.err;
    const json repeats = json::parse(all.out);
    EXPECT_EQ(repeats.at("seeds"), json({5, 6, 7}));
    ASSERT_EQ(repeats.at("runs").size(), 3u);
    const ProgramResult one = folder.headway("replay s.yaml --json --seed 6");
    EXPECT_EQ(repeats["runs"][1], json::parse(one.out));
    EXPECT_EQ(folder.headway("replay s.yaml --json --seed 5 --seeds 3").out, all.out);
}

TEST(Replay, TakesOverridesFromTheCommandLine) {
    const TestFolder folder;
    folder.write("s.yaml", small_scenario());
    const ProgramResult result = folder.headway("replay s.yaml --json --set run.iterations=7 --set name=mine");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(json::parse(result.out)["iterations"], 7);
    EXPECT_EQ(json::parse(result.out)["scenario"], "mine");
    EXPECT_EQ(json::parse(folder.headway("replay s.yaml --json --iterations 9").out)["iterations"], 9);
    const ProgramResult wrong = folder.headway("replay s.yaml --set job.micro_bach=2");
    EXPECT_EQ(wrong.exit_code, 2);
    EXPECT_THAT(wrong.err, HasSubstr("did you mean 'micro_batch'?"));
}

TEST(Replay, OverwritesNothingUnlessForced) {
    const TestFolder folder;
    folder.write("s.yaml", small_scenario());
    folder.write("kept", "precious");
    for (const char* option : {"--out", "--trace"}) {
        const ProgramResult refused = folder.headway(std::string("replay s.yaml ") + option + " kept");
        EXPECT_EQ(refused.exit_code, 2);
        EXPECT_THAT(refused.err, HasSubstr("--force"));
        EXPECT_EQ(folder.read("kept"), "precious");
    }
    // --force replaces a trace and an older record, but nothing that is no record by a record.
    const ProgramResult no_record = folder.headway("replay s.yaml --out kept --force");
    EXPECT_EQ(no_record.exit_code, 2);
    EXPECT_THAT(no_record.err, HasSubstr("is no run record"));
    EXPECT_EQ(folder.read("kept"), "precious");
    ASSERT_EQ(folder.headway("replay s.yaml --out r.jsonl").exit_code, 0);
    EXPECT_EQ(folder.headway("replay s.yaml --out r.jsonl").exit_code, 2);
    EXPECT_EQ(folder.headway("replay s.yaml --out r.jsonl --seed 9 --force").exit_code, 0);
    EXPECT_THAT(folder.read("r.jsonl"), HasSubstr("\"seed\":9"));
    EXPECT_EQ(folder.headway("replay s.yaml --trace kept --force").exit_code, 0);
    EXPECT_EQ(folder.headway("replay s.yaml --seed -1").exit_code, 2);
    // Whatever is forced, the scenario stays, and two outputs do not share a file.
    EXPECT_THAT(folder.headway("replay s.yaml --trace s.yaml --force").err, HasSubstr("is the scenario"));
    EXPECT_EQ(folder.headway("check s.yaml").exit_code, 0);
    EXPECT_THAT(folder.headway("replay s.yaml --out x --trace x").err, HasSubstr("is the file of --out too"));
    EXPECT_TRUE(json::accept(folder.read("kept")));
}

TEST(Replay, RefusesOutputThatCannotBeWrittenBeforeItRuns) {
    const TestFolder folder;
    folder.write("s.yaml", small_scenario());
    const ProgramResult nowhere = folder.headway("replay s.yaml --out no/such/folder/r.jsonl");
    EXPECT_EQ(nowhere.exit_code, 2);
    EXPECT_THAT(nowhere.err, HasSubstr("there is no folder no/such/folder"));
    EXPECT_EQ(folder.headway("replay s.yaml --out .").exit_code, 2);
    EXPECT_EQ(folder.headway("replay s.yaml --trace no/such/folder/t.json").exit_code, 2);
}

TEST(Replay, FailsWhenStandardOutputIsClosedOrFull) {
    const TestFolder folder;
    folder.write("s.yaml", small_scenario());
    const ProgramResult closed = folder.headway("replay s.yaml --out r.jsonl", ">&-");
    EXPECT_EQ(closed.exit_code, 1);
    EXPECT_THAT(closed.err, HasSubstr("standard output cannot be written"));
    EXPECT_THAT(folder.read("r.jsonl"), Not(HasSubstr("MFU")));  // no report inside the record
    const ProgramResult full = folder.headway("replay s.yaml", ">/dev/full");
    EXPECT_EQ(full.exit_code, 1);
    EXPECT_THAT(full.err, HasSubstr("standard output cannot be written"));
}

TEST(Replay, ClosesTheRecordAsInterrupted) {
    const TestFolder folder;
    folder.write("s.yaml", small_scenario(kDisturbed));
    // Long enough to be interrupted for certain; the record's first lines say that the run has begun.
    const ProgramResult result = folder.headway(
        "replay s.yaml --json --iterations 90000000 --level decisions --out r.jsonl",
        "& p=$!; for i in $(seq 200); do test -s r.jsonl && break; sleep 0.05; done; sleep 0.2; kill -INT $p; wait $p");
    EXPECT_EQ(result.exit_code, 130) << result.err;
    EXPECT_THAT(result.err, HasSubstr("interrupted"));
    const std::string record = folder.read("r.jsonl");
    const std::string last = record.substr(record.rfind('\n', record.size() - 2) + 1);
    EXPECT_EQ(json::parse(last)["record"], "footer");
    EXPECT_EQ(json::parse(last)["status"], "interrupted");
    EXPECT_GT(json::parse(result.out)["iterations"], 0);
}

TEST(Replay, EndsAllItsWorkersWhenItIsInterrupted) {
    const TestFolder folder;
    folder.write("s.yaml", small_scenario(kDisturbed));
    const ProgramResult result = folder.headway("replay s.yaml --json --iterations 90000000 --seeds 3",
                                                "& p=$!; sleep 1; kill -INT $p; wait $p");
    EXPECT_EQ(result.exit_code, 130) << result.err;
    EXPECT_THAT(result.err, HasSubstr("0 of 3 runs were complete"));
    EXPECT_THAT(result.out, IsEmpty());
}

TEST(CompareAndExport, ReadWhatReplayRecorded) {
    const TestFolder folder;
    folder.write("s.yaml", small_scenario(kDisturbed));
    folder.write("calm.yaml", small_scenario());
    ASSERT_EQ(folder.headway("replay calm.yaml --out a.jsonl").exit_code, 0);
    ASSERT_EQ(folder.headway("replay s.yaml --out b.jsonl").exit_code, 0);
    const ProgramResult text = folder.headway("compare a.jsonl b.jsonl");
    EXPECT_EQ(text.exit_code, 0) << text.err;
    EXPECT_THAT(text.out, HasSubstr("a.jsonl"));
    const ProgramResult compared = folder.headway("compare a.jsonl b.jsonl --json");
    const json difference = json::parse(compared.out);
    EXPECT_GT(difference["a"]["goodput"], difference["b"]["goodput"]);
    // What a record gives is what the run itself reported.
    const json direct = json::parse(folder.headway("replay s.yaml --json").out);
    EXPECT_EQ(difference["b"], direct);

    const ProgramResult exported = folder.headway("export b.jsonl --csv out");
    EXPECT_EQ(exported.exit_code, 0) << exported.err;
    EXPECT_THAT(exported.out, HasSubstr("iterations.csv"));
    const std::string csv = folder.read("out/b.iterations.csv");
    EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 61);
}

}  // namespace
}  // namespace headway::tests
