#include <gtest/gtest.h>

#include "scenarios/record/report.h"
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

TEST(Golden, RecordOfEarlierVersionsIsStillRead) {
    const auto read = scenarios::summarize_record(source_directory() / "tests" / "golden" / "small.run.jsonl");
    EXPECT_EQ(read.problem, "");
    EXPECT_EQ(read.summary.iterations, 5);
}

}  // namespace
}  // namespace headway::tests
