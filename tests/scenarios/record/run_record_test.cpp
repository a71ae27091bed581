#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <tuple>

#include "scenarios/language/config_error.h"
#include "scenarios/record/run_reader.h"
#include "scenarios/record/run_writer.h"
#include "tests/paths.h"
#include "tests/scenarios/record/small_run.h"

namespace headway::tests {
namespace {

using namespace scenarios;
using State = RecordStatus::State;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Provenance kTestProvenance{"headway test", "machine", "2026-01-01T00:00:00Z"};

void write_small_run(const std::filesystem::path& file, RecordLevel level = RecordLevel::kOperations,
                     bool ended = true) {
    RecordWriter writer(file, {level, kTestProvenance});
    play_small_run(writer, ended);
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

std::string joined(const std::vector<std::string>& lines) {
    std::string text;
    for (const auto& line : lines) text += line + "\n";
    return text;
}

TEST(RunRecord, GivesBackWhatWasWritten) {
    const ScratchFolder folder("record-round-trip");
    write_small_run(folder / "a.run.jsonl");
    EventLog told;
    play_small_run(told);
    EventLog read;
    const RecordStatus status = read_record(folder / "a.run.jsonl", read);
    EXPECT_EQ(status.state, State::kComplete) << status.problem;
    EXPECT_THAT(status.problem, IsEmpty());
    EXPECT_EQ(read.headers, told.headers);
    EXPECT_EQ(read.iterations, told.iterations);
    EXPECT_EQ(read.disturbances, told.disturbances);
    EXPECT_EQ(read.pauses, told.pauses);
    EXPECT_EQ(read.decisions, told.decisions);
    EXPECT_EQ(read.link_loads, told.link_loads);
    EXPECT_EQ(read.logs, told.logs);
    EXPECT_EQ(read.footers, told.footers);
    ASSERT_EQ(read.operation_events.size(), 1u);
    ASSERT_EQ(read.operation_events[0].entries.size(), told.operation_events[0].entries.size());
    for (std::size_t i = 0; i < read.operation_events[0].entries.size(); ++i) {
        const TimelineEntry& a = read.operation_events[0].entries[i];
        const TimelineEntry& b = told.operation_events[0].entries[i];
        EXPECT_EQ(std::tie(a.worker, a.op, a.chunk, a.micro_batch, a.start_ns, a.end_ns),
                  std::tie(b.worker, b.op, b.chunk, b.micro_batch, b.start_ns, b.end_ns));
    }
    // Telemetry: GPU 2 moved by less than the sensors resolve, so only GPU 1 was written again, whole when read.
    ASSERT_EQ(read.telemetry_events.size(), 5u);
    EXPECT_EQ(read.telemetry_events[4], told.telemetry_events[4]);
}

TEST(RunRecord, WritesTheSameBytesForTheSameRunButProvenance) {
    const ScratchFolder folder("record-twice");
    write_small_run(folder / "a.run.jsonl");
    RecordWriter writer(folder / "b.run.jsonl", {RecordLevel::kOperations, current_provenance("headway other")});
    play_small_run(writer);
    auto a = lines_of(file_text(folder / "a.run.jsonl"));
    auto b = lines_of(file_text(folder / "b.run.jsonl"));
    ASSERT_EQ(a.size(), b.size());
    ASSERT_THAT(a[1], HasSubstr(R"("record":"provenance")"));
    EXPECT_NE(a[1], b[1]);
    a.erase(a.begin() + 1);
    b.erase(b.begin() + 1);
    EXPECT_EQ(a, b);
    EXPECT_EQ(writer.bytes(), static_cast<std::int64_t>(file_text(folder / "b.run.jsonl").size()));
}

TEST(RunRecord, HoldsOneJsonObjectALineWithItsKindFirst) {
    const ScratchFolder folder("record-json");
    write_small_run(folder / "a.run.jsonl");
    for (const std::string& line : lines_of(file_text(folder / "a.run.jsonl"))) {
        EXPECT_TRUE(nlohmann::json::accept(line)) << line;
        EXPECT_THAT(line, ::testing::StartsWith(R"({"record":")"));
    }
}

TEST(RunRecord, LeavesOutWhatItsLevelDoesNotHold) {
    const ScratchFolder folder("record-levels");
    std::map<RecordLevel, std::set<std::string>> kinds;
    for (const auto level : {RecordLevel::kDecisions, RecordLevel::kIterations, RecordLevel::kOperations}) {
        const auto file = folder / (std::string(name_of(level)) + ".run.jsonl");
        write_small_run(file, level);
        for (const auto& line : lines_of(file_text(file))) kinds[level].insert(nlohmann::json::parse(line)["record"]);
        EventLog read;
        RecordReader reader(file);
        EXPECT_EQ(reader.poll(read).state, State::kComplete);
        EXPECT_EQ(reader.level(), level);
        EXPECT_EQ(reader.provenance()->program, kTestProvenance.program);
    }
    EXPECT_THAT(kinds[RecordLevel::kDecisions], ElementsAre("decision", "disturbance", "footer", "header", "log",
                                                            "pause", "provenance", "scenario", "topology"));
    EXPECT_TRUE(kinds[RecordLevel::kIterations].contains("telemetry"));
    EXPECT_FALSE(kinds[RecordLevel::kIterations].contains("op"));
    EXPECT_TRUE(kinds[RecordLevel::kOperations].contains("op"));
}

TEST(RunRecord, LeavesNoFileWhenTheRunNeverBegins) {
    const ScratchFolder folder("record-none");
    { RecordWriter writer(folder / "a.run.jsonl"); }
    EXPECT_FALSE(std::filesystem::exists(folder / "a.run.jsonl"));
}

TEST(RunRecord, RefusesToOverwriteWhatIsNotARecord) {
    const ScratchFolder folder("record-overwrite");
    write_file(folder / "scenario.yaml", "name: precious\n");
    RecordWriter writer(folder / "scenario.yaml");
    EXPECT_THROW(writer.begin(small_header()), std::runtime_error);
    EXPECT_EQ(file_text(folder / "scenario.yaml"), "name: precious\n");
}

TEST(RunRecord, ReplacesAnEarlierRecord) {
    const ScratchFolder folder("record-replace");
    write_small_run(folder / "a.run.jsonl", RecordLevel::kOperations);
    write_small_run(folder / "a.run.jsonl", RecordLevel::kDecisions);
    EventLog read;
    EXPECT_EQ(read_record(folder / "a.run.jsonl", read).state, State::kComplete);
    EXPECT_TRUE(read.iterations.empty());
}

TEST(RunRecord, HasOneWriterAtATime) {
    const ScratchFolder folder("record-lock");
    RecordWriter first(folder / "a.run.jsonl");
    first.begin(small_header());
    RecordWriter second(folder / "a.run.jsonl");
    try {
        second.begin(small_header());
        FAIL() << "two writers at once";
    } catch (const std::runtime_error& error) {
        EXPECT_THAT(error.what(), HasSubstr("another run writes to it"));
    }
}

TEST(RunRecord, SaysWhichFileCannotBeWritten) {
    RecordWriter writer("/no/such/folder/a.run.jsonl");
    try {
        writer.begin(small_header());
        FAIL() << "wrote into a folder that does not exist";
    } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "cannot write /no/such/folder/a.run.jsonl: No such file or directory");
    }
}

TEST(RunRecord, ReportsAFullDisk) {
    if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
    RecordWriter writer("/dev/full");
    EXPECT_THROW(writer.begin(small_header()), std::runtime_error);
}

TEST(RunRecord, RefusesNumbersThatAreNotFinite) {
    const ScratchFolder folder("record-nan");
    RunHeader header = small_header();
    header.model_flops = std::numeric_limits<double>::quiet_NaN();
    RecordWriter writer(folder / "a.run.jsonl");
    EXPECT_THROW(writer.begin(header), std::invalid_argument);
    EXPECT_FALSE(std::filesystem::exists(folder / "a.run.jsonl"));
    writer.begin(small_header());
    writer.telemetry({0, 1, std::numeric_limits<double>::infinity(), 0, 0, 1, 0});
    EXPECT_THROW(writer.iteration(small_iteration(0, 0, 10)), std::invalid_argument);
}

TEST(RecordReader, KeepsWhatComesBeforeEveryPossibleCut) {
    const ScratchFolder folder("record-cut");
    write_small_run(folder / "a.run.jsonl");
    const std::string whole = file_text(folder / "a.run.jsonl");
    std::size_t delivered_before = 7;
    for (std::size_t size = whole.size() - 1; size-- > 0;) {
        std::filesystem::resize_file(folder / "a.run.jsonl", size);
        EventLog read;
        const RecordStatus status = read_record(folder / "a.run.jsonl", read);
        ASSERT_EQ(status.state, State::kUnfinished) << size;
        ASSERT_THAT(status.problem, HasSubstr("a.run.jsonl: unfinished: no footer after line")) << size;
        const bool at_line_end = size == 0 || whole[size - 1] == '\n';
        ASSERT_EQ(status.problem.find("is cut off") == std::string::npos, at_line_end) << size;
        ASSERT_LE(read.iterations.size(), delivered_before);
        ASSERT_GE(read.iterations.size() + 1, delivered_before);
        delivered_before = read.iterations.size();
    }
    EXPECT_EQ(delivered_before, 0u);
}

TEST(RecordReader, NoticesEveryMissingLine) {
    const ScratchFolder folder("record-missing");
    write_small_run(folder / "a.run.jsonl");
    const auto lines = lines_of(file_text(folder / "a.run.jsonl"));
    for (std::size_t missing = 0; missing + 1 < lines.size(); ++missing) {
        auto rest = lines;
        rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(missing));
        write_file(folder / "b.run.jsonl", joined(rest));
        EventLog read;
        const auto state = read_record(folder / "b.run.jsonl", read).state;
        EXPECT_EQ(state, lines[missing].starts_with(R"({"record":"provenance")") ? State::kComplete : State::kDamaged)
            << missing;
    }
}

TEST(RecordReader, SurvivesAndNoticesChangedBytes) {
    const ScratchFolder folder("record-flip");
    write_small_run(folder / "a.run.jsonl");
    const std::string whole = file_text(folder / "a.run.jsonl");
    std::mt19937 random(1);
    const unsigned stride = long_tests() ? 1 : 20;
    for (std::size_t at = 0; at < whole.size(); at += 1 + random() % (2 * stride - 1)) {
        std::string changed = whole;
        changed[at] = static_cast<char>(random() & 0xFF);
        if (changed[at] == whole[at]) continue;
        write_file(folder / "b.run.jsonl", changed);
        EventLog read;
        const RecordStatus status = read_record(folder / "b.run.jsonl", read);
        const std::size_t start = whole.rfind('\n', at == 0 ? 0 : at - 1) + 1;
        const std::string line = whole.substr(at == 0 ? 0 : start, 30);
        // Only provenance is outside the digest.
        const bool outside = line.starts_with(R"({"record":"provenance")");
        if (!outside && whole[at] != '\n') {
            ASSERT_NE(status.state, State::kComplete) << at << ": " << line;
        }
        if (status.state != State::kComplete) {
            ASSERT_THAT(status.problem, HasSubstr("b.run.jsonl:")) << at;
        }
    }
}

TEST(RecordReader, SaysWhatIsWrongAndWhere) {
    const ScratchFolder folder("record-wrong");
    write_small_run(folder / "a.run.jsonl");
    const auto lines = lines_of(file_text(folder / "a.run.jsonl"));
    const auto problem_with = [&](std::size_t line, const std::string& from, const std::string& to) {
        auto changed = lines;
        const auto at = changed[line].find(from);
        EXPECT_NE(at, std::string::npos) << from;
        changed[line].replace(at, from.size(), to);
        write_file(folder / "b.run.jsonl", joined(changed));
        EventLog read;
        return read_record(folder / "b.run.jsonl", read).problem;
    };
    EXPECT_THAT(problem_with(0, R"("version":3)", R"("version":9)"),
                EndsWith("b.run.jsonl:1: version 9 of the run record cannot be read (this program reads version 3)"));
    EXPECT_THAT(problem_with(0, R"("headway-run")", R"("other")"), EndsWith("b.run.jsonl:1: this is not a run record"));
    EXPECT_THAT(problem_with(2, R"("yaml":)", R"("yam":)"), EndsWith("b.run.jsonl:3: 'yaml' is missing"));
    EXPECT_THAT(problem_with(2, R"("record":"scenario")", R"("record":"topology")"),
                EndsWith("b.run.jsonl:3: a 'scenario' line was expected here, not 'topology'"));
    EXPECT_THAT(problem_with(3, R"("gpu_of_rank":[0,)", R"("gpu_of_rank":[9,)"),
                EndsWith("b.run.jsonl:4: 'gpu_of_rank' names a GPU that does not exist"));
    EXPECT_THAT(problem_with(4, R"("record":"telemetry")", R"("record":"telemetri")"),
                EndsWith("b.run.jsonl:5: unknown kind of record 'telemetri'"));
    EXPECT_THAT(problem_with(6, R"("index":0)", R"("index":0.5)"),
                EndsWith("b.run.jsonl:7: 'index' is not a whole number in range"));
    EXPECT_THAT(problem_with(6, R"("duration_ns":10000000000)", R"("duration_ns":9000000000000000000)"),
                EndsWith("b.run.jsonl:7: 'duration_ns' is no time in a run"));
    EXPECT_THAT(problem_with(6, R"("compute_ns":6)", R"("compute_ns":66)"),
                EndsWith("b.run.jsonl:7: a share exceeds 'duration_ns'"));
    EXPECT_THAT(problem_with(lines.size() - 2, R"("start_ns":121)", R"("start_ns":1)"),
                EndsWith(": 'start_ns' is before the end of the one before"));
    EXPECT_THAT(problem_with(6, R"("compute_ns":6)", R"("compute_ns":7)"),
                HasSubstr("the footer's digest does not match"));
}

TEST(RecordReader, RejectsFilesThatAreNoRecords) {
    const ScratchFolder folder("record-foreign");
    EventLog read;
    EXPECT_THROW(read_record(folder / "absent.run.jsonl", read), ConfigError);
    EXPECT_THROW(read_record(folder.path(), read), ConfigError);
    write_file(folder / "a.yaml", "name: a\nseed: 1\n");
    const RecordStatus status = read_record(folder / "a.yaml", read);
    EXPECT_EQ(status.state, State::kDamaged);
    EXPECT_THAT(status.problem, EndsWith("a.yaml:1: this is not a run record"));
    write_file(folder / "deep.jsonl", std::string(200'000, '[') + "\n");
    EXPECT_EQ(read_record(folder / "deep.jsonl", read).state, State::kDamaged);
    EXPECT_TRUE(read.headers.empty());
}

TEST(RecordReader, FollowsARecordThatGrows) {
    const ScratchFolder folder("record-grow");
    write_small_run(folder / "a.run.jsonl");
    const std::string whole = file_text(folder / "a.run.jsonl");
    write_file(folder / "b.run.jsonl", "");
    RecordReader reader(folder / "b.run.jsonl");
    EventLog read;
    std::ofstream growing(folder / "b.run.jsonl", std::ios::binary | std::ios::app);
    for (std::size_t at = 0; at < whole.size(); at += 97) {
        EXPECT_EQ(reader.poll(read).state, State::kUnfinished);
        growing << whole.substr(at, 97) << std::flush;
    }
    EXPECT_EQ(reader.poll(read).state, State::kComplete);
    EventLog at_once;
    read_record(folder / "a.run.jsonl", at_once);
    EXPECT_EQ(read.iterations, at_once.iterations);
    EXPECT_EQ(read.telemetry_events, at_once.telemetry_events);
    EXPECT_EQ(read.footers, at_once.footers);
    growing << "more\n" << std::flush;
    EXPECT_EQ(reader.poll(read).state, State::kDamaged);
}

TEST(RecordReader, DeliversNoFooterForARunThatWasCutOff) {
    const ScratchFolder folder("record-unended");
    write_small_run(folder / "a.run.jsonl", RecordLevel::kIterations, /*ended=*/false);
    EventLog read;
    const RecordStatus status = read_record(folder / "a.run.jsonl", read);
    EXPECT_EQ(status.state, State::kUnfinished);
    EXPECT_EQ(read.iterations.size(), 7u);
    EXPECT_TRUE(read.footers.empty());
}

}  // namespace
}  // namespace headway::tests
