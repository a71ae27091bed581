#include <gtest/gtest.h>

#include <cstdlib>

#include "scenarios/record/report.h"
#include "scenarios/record/run_reader.h"
#include "scenarios/record/run_writer.h"
#include "tests/paths.h"
#include "tests/scenarios/record/small_run.h"

/// The record and the reports of one scripted run, byte by byte: a change of either shows up in review. A test that
/// fails leaves what it got beside the golden file as NAME.actual; where the change is meant, that file replaces the
/// golden one.
namespace headway::tests {
namespace {

void expect_golden(const std::string& name, const std::string& actual) {
    const auto golden = source_directory() / "tests" / "golden" / name;
    const auto left = source_directory() / "tests" / "golden" / (name + ".actual");
    if (file_text(golden) == actual) {
        std::filesystem::remove(left);
        return;
    }
    write_file(left, actual);
    ADD_FAILURE() << golden << " differs from " << left;
}

TEST(Golden, RecordOfTheSmallRun) {
    const ScratchFolder folder("golden-record");
    {
        scenarios::RecordWriter writer(
            folder / "small.run.jsonl",
            {scenarios::RecordLevel::kOperations, {"headway test", "machine", "2026-01-01T00:00:00Z"}});
        play_small_run(writer);
    }
    expect_golden("small.run.jsonl", file_text(folder / "small.run.jsonl"));
}

TEST(Golden, ReportOfTheSmallRun) {
    scenarios::SummarySink sink;
    play_small_run(sink);
    expect_golden("small.report.txt", report_text(sink.summary()));
    expect_golden("small.report.json", report_json(sink.summary()));
}

TEST(Golden, RecordIsRead) {
    const auto read = scenarios::summarize_record(source_directory() / "tests" / "golden" / "small.run.jsonl");
    EXPECT_EQ(read.problem, "");
    EXPECT_EQ(read.summary.iterations, 5);
}

/// Times may differ by this share between machines: libm does.
constexpr double kTimeTolerance = 1e-3;

void expect_time_near(std::int64_t actual_ns, std::int64_t golden_ns, const std::string& what) {
    EXPECT_NEAR(static_cast<double>(actual_ns), static_cast<double>(golden_ns),
                kTimeTolerance * static_cast<double>(golden_ns) + 1.0)
        << what;
}

/// A replay with given operation times, so that no refinement of the cost model moves it: decisions, losses and what
/// was trained compare exactly, times to the tolerance.
TEST(Golden, SimulatedRunDecidesTheSame) {
    const ScratchFolder folder("golden-simulated");
    const auto inputs = source_directory() / "tests" / "golden";
    const auto record = folder / "simulated.run.jsonl";
    const std::string command = "'" + headway_program().string() + "' replay '" + (inputs / "simulated.yaml").string() +
                                "' --out '" + record.string() + "' >/dev/null";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    EventLog actual;
    EventLog golden;
    ASSERT_EQ(scenarios::read_record(record, actual).problem, "");
    ASSERT_EQ(scenarios::read_record(inputs / "simulated.run.jsonl", golden).problem, "");

    EXPECT_EQ(actual.headers.at(0).plan, golden.headers.at(0).plan);
    EXPECT_EQ(actual.headers.at(0).disturbances, golden.headers.at(0).disturbances);
    EXPECT_EQ(actual.headers.at(0).healthy_iteration_ns, 1'420'000'000)
        << "8 x 150 ms on the slower stage, 120 ms to fill and drain the pipeline, 100 ms for the rest";

    ASSERT_EQ(actual.decisions.size(), golden.decisions.size());
    for (std::size_t i = 0; i < golden.decisions.size(); ++i) {
        EXPECT_EQ(actual.decisions[i].iteration, golden.decisions[i].iteration) << i;
        // What was offered besides is the planner's to refine.
        EXPECT_EQ(actual.decisions[i].candidates.at(0).kind, golden.decisions[i].candidates.at(0).kind) << i;
        expect_time_near(actual.decisions[i].candidates[0].iteration_ns, golden.decisions[i].candidates[0].iteration_ns,
                         "prediction at " + std::to_string(i));
        EXPECT_EQ(actual.decisions[i].plan, golden.decisions[i].plan) << i;
        EXPECT_EQ(actual.decisions[i].chosen, golden.decisions[i].chosen) << i;
        EXPECT_EQ(actual.decisions[i].lost_gpus, golden.decisions[i].lost_gpus) << i;
        expect_time_near(actual.decisions[i].time_ns, golden.decisions[i].time_ns, "decision " + std::to_string(i));
    }
    ASSERT_EQ(actual.pauses.size(), golden.pauses.size());
    for (std::size_t i = 0; i < golden.pauses.size(); ++i) {
        EXPECT_EQ(actual.pauses[i].reason, golden.pauses[i].reason) << i;
        EXPECT_EQ(actual.pauses[i].iterations_lost, golden.pauses[i].iterations_lost) << i;
        EXPECT_EQ(actual.pauses[i].disturbance, golden.pauses[i].disturbance) << i;
        expect_time_near(actual.pauses[i].start_ns, golden.pauses[i].start_ns, "start of pause " + std::to_string(i));
        expect_time_near(actual.pauses[i].duration_ns, golden.pauses[i].duration_ns, "pause " + std::to_string(i));
    }
    ASSERT_EQ(actual.iterations.size(), golden.iterations.size());
    for (std::size_t i = 0; i < golden.iterations.size(); ++i) {
        EXPECT_EQ(actual.iterations[i].index, golden.iterations[i].index) << i;
        EXPECT_EQ(actual.iterations[i].repeats, golden.iterations[i].repeats) << i;
        expect_time_near(actual.iterations[i].duration_ns, golden.iterations[i].duration_ns,
                         "iteration " + std::to_string(i));
    }
    expect_time_near(actual.footers.at(0).wall_ns, golden.footers.at(0).wall_ns, "wall time");
}

}  // namespace
}  // namespace headway::tests
