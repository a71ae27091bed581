#include "scenarios/record/exports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "scenarios/language/config_error.h"
#include "scenarios/record/run_writer.h"
#include "scenarios/record/whole_file.h"
#include "tests/scenarios/record/small_run.h"

namespace headway::tests {
namespace {

using namespace scenarios;
using ExportJson = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<ExportJson> trace_events(const std::filesystem::path& file) {
    const ExportJson trace = ExportJson::parse(file_text(file));
    EXPECT_EQ(trace["displayTimeUnit"], "ms");
    return trace["traceEvents"].get<std::vector<ExportJson>>();
}

std::vector<ExportJson> small_trace(TraceOptions options = {}) {
    const ScratchFolder folder("trace");
    TraceWriter writer(folder / "t.json", options);
    play_small_run(writer);
    return trace_events(folder / "t.json");
}

std::vector<ExportJson> with_phase(const std::vector<ExportJson>& events, const std::string& phase) {
    std::vector<ExportJson> found;
    std::copy_if(events.begin(), events.end(), std::back_inserter(found),
                 [&](const ExportJson& event) { return event["ph"] == phase; });
    return found;
}

TEST(Trace, IsWellFormedAndItsSlicesOnATrackDoNotOverlap) {
    std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> slices;
    for (const ExportJson& event : small_trace()) {
        for (const char* key : {"name", "ph", "pid", "tid", "ts"}) ASSERT_TRUE(event.contains(key)) << event;
        if (event["ph"] != "X") continue;
        ASSERT_GE(event["dur"].get<double>(), 0.0) << event;
        slices[{event["pid"], event["tid"]}].push_back(
            {event["ts"], event["ts"].get<double>() + event["dur"].get<double>()});
    }
    EXPECT_GE(slices.size(), 7u);
    for (auto& [track, spans] : slices) {
        std::sort(spans.begin(), spans.end());
        for (std::size_t i = 1; i < spans.size(); ++i) EXPECT_GE(spans[i].first, spans[i - 1].second - 1e-6);
    }
}

TEST(Trace, NamesAProcessForTheRunAndForEveryReplicaAndStage) {
    std::vector<std::string> names;
    for (const ExportJson& event : small_trace()) {
        if (event["name"] == "process_name") names.push_back(event["args"]["name"]);
    }
    EXPECT_THAT(names, ElementsAre("run: small, policy static", "replica 0 stage 0", "replica 0 stage 1"));
}

TEST(Trace, ShowsDisturbancesAsSpansUntilTheyEnd) {
    const auto events = with_phase(small_trace(), "X");
    const auto span = [&](const std::string& name) {
        const auto found =
            std::find_if(events.begin(), events.end(), [&](const ExportJson& event) { return event["name"] == name; });
        EXPECT_NE(found, events.end()) << name;
        return std::pair<double, double>{(*found)["ts"], (*found)["dur"]};
    };
    EXPECT_EQ(span("GPU 1 loses airflow"), (std::pair<double, double>{5e6, 60e6}));
    EXPECT_EQ(span("node 1 lost"), (std::pair<double, double>{44e6, 87e6})) << "open until the run ends";
    EXPECT_EQ(span("loss"), (std::pair<double, double>{45e6, 55e6}));
    EXPECT_EQ(span("repeat 3"), (std::pair<double, double>{110e6, 11e6}));
}

TEST(Trace, CountsTemperatureAndClockOfDisturbedGpusOnly) {
    std::map<std::string, std::vector<double>> counters;
    for (const ExportJson& event : with_phase(small_trace(), "C")) {
        for (const auto& [unit, value] : event["args"].items()) counters[event["name"]].push_back(value);
    }
    EXPECT_EQ(counters.size(), 2u);
    EXPECT_THAT(counters["GPU 1 temperature"], ElementsAre(40.0, 83.5)) << "with the value it came from";
    EXPECT_THAT(counters["GPU 1 SM clock"], ElementsAre(1410.0, 1200.0));
}

TEST(Trace, WritesOperationsOfTheFirstIterationsAndAfterDisturbancesUpToALimit) {
    const ScratchFolder folder("trace-limit");
    const std::vector<TimelineEntry> ten(10, {0, 0, 0, 0, 0, 1});
    {
        TraceWriter writer(folder / "t.json", {35});
        writer.begin(small_header());
        for (int i = 0; i < 10; ++i) {
            if (i == 5) writer.disturbance({0, 0, true});
            if (i == 8) writer.disturbance({0, 1, true});
            EXPECT_EQ(writer.wants_operations(), i < 2 || i == 5) << i;
            writer.operations(i, i * kSecond, ten);
        }
        writer.end({});
    }
    std::map<int, int> of_iteration;
    for (const ExportJson& event : with_phase(trace_events(folder / "t.json"), "X")) {
        if (event["name"] == "forward") ++of_iteration[event["args"]["iteration"]];
    }
    EXPECT_EQ(of_iteration, (std::map<int, int>{{0, 10}, {1, 10}, {5, 10}}));
}

TEST(Trace, LeavesNothingOfARunThatDidNotEnd) {
    const ScratchFolder folder("trace-broken");
    {
        TraceWriter writer(folder / "t.json");
        play_small_run(writer, /*ended=*/false);
    }
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Csv, WritesOneFileAKindWithTheFiguresOfTheRun) {
    const ScratchFolder folder("csv");
    {
        RecordWriter writer(folder / "small.run.jsonl", {RecordLevel::kOperations, {}});
        play_small_run(writer);
    }
    const CsvExport exported = export_csv(folder / "small.run.jsonl", folder / "out");
    EXPECT_THAT(exported.problem, IsEmpty());
    std::set<std::string> names;
    for (const auto& path : exported.files) {
        names.insert(path.filename().string());
        EXPECT_TRUE(std::filesystem::exists(path));
    }
    EXPECT_THAT(names, ElementsAre("small.decisions.csv", "small.disturbance_costs.csv", "small.disturbances.csv",
                                   "small.gpus.csv", "small.iterations.csv", "small.link_load.csv", "small.log.csv",
                                   "small.operations.csv", "small.pauses.csv", "small.telemetry.csv"));
    EXPECT_EQ(file_text(folder / "out/small.disturbance_costs.csv"),
              "iteration,start_ns,disturbance,cost_ns\n1,10000000000,0,2000000000\n2,23000000000,0,2000000000\n"
              "3,110000000000,0,1000000000\n");
    EXPECT_EQ(file_text(folder / "out/small.telemetry.csv"),
              "time_ns,gpu,temperature_c,sm_clock_mhz,power_w,speed,throttle_reasons\n0,0,40,1410,300,1,0\n"
              "0,1,40,1410,300,1,0\n0,2,40,1410,300,1,0\n0,3,40,1410,300,1,0\n10000000000,1,83.5,1200,250,0.85,32\n");
    EXPECT_THAT(file_text(folder / "out/small.iterations.csv"),
                HasSubstr("\n3,110000000000,11000000000,true,0,0,0,0,0,0,11000000000\n"));
    EXPECT_THAT(file_text(folder / "out/small.pauses.csv"),
                HasSubstr("\nloss,45000000000,55000000000,2,1,\"node 1 lost; waited 40 s for its repair, reloaded"));
    EXPECT_THAT(file_text(folder / "out/small.operations.csv"),
                HasSubstr("\n0,0,1,reduce_gradients,0,0,7000000000,8000000000\n"));
    for (const auto& entry : std::filesystem::directory_iterator(folder / "out")) {
        EXPECT_EQ(entry.path().extension(), ".csv") << "a temporary file was left";
    }
}

TEST(Csv, QuotesWhatNeedsIt) {
    const ScratchFolder folder("csv-quote");
    {
        RecordWriter writer(folder / "a.run.jsonl");
        writer.begin(small_header());
        writer.log({LogEvent::Severity::kInfo, 1, "a \"b\", c\nd"});
        writer.end({});
    }
    export_csv(folder / "a.run.jsonl", folder.path());
    EXPECT_EQ(file_text(folder / "a.log.csv"), "time_ns,severity,text\n1,info,\"a \"\"b\"\", c\nd\"\n");
}

TEST(Csv, ConvertsWhatItCanOfACutRecordAndSaysSo) {
    const ScratchFolder folder("csv-cut");
    {
        RecordWriter writer(folder / "a.run.jsonl");
        play_small_run(writer, /*ended=*/false);
    }
    const CsvExport exported = export_csv(folder / "a.run.jsonl", folder / "out");
    EXPECT_THAT(exported.problem, HasSubstr("unfinished"));
    EXPECT_TRUE(std::filesystem::exists(folder / "out/a.iterations.csv"));
}

TEST(Csv, WritesNothingForWhatIsNoRecord) {
    const ScratchFolder folder("csv-foreign");
    write_file(folder / "a.yaml", "name: a\n");
    EXPECT_THROW(export_csv(folder / "a.yaml", folder / "out"), ConfigError);
    EXPECT_THROW(export_csv(folder / "absent.run.jsonl", folder / "out"), ConfigError);
    EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

TEST(WholeFile, AppearsOnlyWhenCommitted) {
    const ScratchFolder folder("whole");
    write_file(folder / "a", "old");
    {
        WholeFile file(folder / "a");
        file.write("new");
        EXPECT_EQ(file_text(folder / "a"), "old");
    }
    EXPECT_EQ(file_text(folder / "a"), "old");
    {
        WholeFile file(folder / "a");
        file.write("new");
        file.commit();
    }
    EXPECT_EQ(file_text(folder / "a"), "new");
    EXPECT_THROW(WholeFile("/no/such/folder/a"), std::runtime_error);
    EXPECT_THROW(WholeFile(folder.path()), std::runtime_error);
    if (std::filesystem::exists("/dev/full")) {
        WholeFile full("/dev/full");
        full.write("x");
        EXPECT_THROW(full.commit(), std::runtime_error);
    }
}

}  // namespace
}  // namespace headway::tests
