#include "scenarios/language/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/scenarios/language/small_scenario.h"

namespace headway::scenarios {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class CsvInputs : public testing::Test {
  protected:
    void SetUp() override {
        folder_ = fs::temp_directory_path() / ("headway-csv-" + std::to_string(getpid()));
        fs::create_directories(folder_);
    }
    void TearDown() override { fs::remove_all(folder_); }

    void write(const std::string& name, const std::string& text) const {
        std::ofstream(folder_ / name, std::ios::binary) << text;
    }

    Scenario with_series(const std::string& csv) const {
        write("speed.csv", csv);
        return parse_scenario(small_scenario(), "small.yaml", folder_, shipped(),
                              {{"disturbances.0", "{start: 1 s, speed_factor: {gpu: 1, series: speed.csv}}"}});
    }
    std::string series_error(const std::string& csv) const {
        write("speed.csv", csv);
        return error_of(small_scenario(),
                        {{"disturbances.0", "{start: 1 s, speed_factor: {gpu: 1, series: speed.csv}}"}}, folder_);
    }
    std::string workers_error(const std::string& csv, const std::vector<Override>& more = {}) const {
        write("workers.csv", csv);
        std::vector<Override> overrides{{"job.measured", "{workers: workers.csv, rest_of_step: 1 s}"}};
        overrides.insert(overrides.end(), more.begin(), more.end());
        return error_of(small_scenario(), overrides, folder_);
    }

    fs::path folder_;
};

const char* const kWorkers = "replica,stage,forward_ms,backward_ms\n0,0,10,20\n0,1,11,21\n1,0,12,22\n1,1,13,23\n";

TEST_F(CsvInputs, BecomePartOfTheScenario) {
    const Scenario scenario = with_series("# measured\ntime_s,factor\n0,1.0\n10.5,0.4\r\n\n20,1\n");
    const auto& series = std::get<SpeedFactor>(scenario.disturbances[0].cause).series;
    ASSERT_EQ(series.size(), 3u);
    EXPECT_EQ(series[1].time, Duration::milliseconds(10500));
    EXPECT_EQ(series[1].factor, 0.4);
    // The resolved scenario stands alone.
    EXPECT_TRUE(parse_scenario(write_scenario(scenario), "r.yaml", "/nonexistent", Catalogue{"/nonexistent"}) ==
                scenario);
}

TEST_F(CsvInputs, OfMeasuredTimesAreOrderedByReplicaAndStage) {
    write("workers.csv",
          "stage,replica,backward_ms,forward_ms,send_activation_ms\n1,1,23,13,0.5\n0,0,20,10,0.5\n1,0,21,11,0.5\n0,1,"
          "22,12,0.5\n");
    const Scenario scenario = parse_scenario(small_scenario(), "small.yaml", folder_, shipped(),
                                             {{"job.measured", "{workers: workers.csv, rest_of_step: 1 s}"}});
    ASSERT_TRUE(scenario.job.measured);
    const auto& workers = scenario.job.measured->workers;
    ASSERT_EQ(workers.size(), 4u);
    EXPECT_EQ(workers[3],
              (MeasuredWorker{
                  1, 1, Duration::milliseconds(13), Duration::milliseconds(23), Duration::microseconds(500), {}}));
    EXPECT_TRUE(parse_scenario(write_scenario(scenario), "r.yaml", "/nonexistent", Catalogue{"/nonexistent"}) ==
                scenario);
}

TEST_F(CsvInputs, ThatAreMissingAreNamedWhereTheScenarioNamesThem) {
    const std::string text = small_with("jitter: {spread: 0.1}", "speed_factor: {gpu: 1, series: gone.csv}");
    EXPECT_THAT(error_of(text, {}, folder_), AllOf(HasSubstr("small.yaml:17:36: disturbances.0.speed_factor.series: "),
                                                   HasSubstr("gone.csv: no such file")));
    EXPECT_THAT(error_of(small_with("jitter: {spread: 0.1}", "speed_factor: {gpu: 1, series: /dev/zero}"), {}, folder_),
                HasSubstr("no such file"));
}

TEST_F(CsvInputs, ThatWereCutOffAreNoticed) {
    EXPECT_THAT(series_error("time_s,factor\n0,1\n10,0."),
                HasSubstr("speed.csv:3: the last line has no line end (was the file cut off?)"));
    EXPECT_THAT(series_error("time_s,factor\n0,1\n10\n"),
                HasSubstr("speed.csv:3: 1 values in this line, but 2 columns"));
    EXPECT_THAT(series_error(""), HasSubstr("speed.csv:1: the file is empty"));
    EXPECT_THAT(series_error("time_s,factor\n"), HasSubstr("speed.csv:1: no rows"));
    EXPECT_THAT(workers_error("replica,stage,forward_ms,backward_ms\n0,0,10,20\n0,1,11,21\n1,0,12,22\n"),
                HasSubstr("job.measured.workers: replica 1, stage 1 is missing"));
}

TEST_F(CsvInputs, HoldNumbersOnly) {
    EXPECT_THAT(series_error("time_s,factor\n0,fast\n"),
                HasSubstr("speed.csv:2: factor: fast is not allowed (a number, 0.001 to 10)"));
    EXPECT_THAT(series_error("time_s,factor\n0,\n"), HasSubstr("speed.csv:2: factor: '' is not allowed"));
    EXPECT_THAT(series_error("time_s,factor\n0,nan\n"), HasSubstr("factor: nan is not allowed"));
    EXPECT_THAT(series_error("time_s,factor\n0,0\n"), HasSubstr("factor: 0 is not allowed"));
    EXPECT_THAT(series_error("time_s,factor\n5,1\n"),
                HasSubstr("speed.csv:2: time_s: 5 is not allowed (the first time is 0)"));
    EXPECT_THAT(series_error("time_s,factor\n0,1\n5,1\n5,2\n"),
                HasSubstr("speed.csv:4: time_s: 5 is not allowed (later than the row before)"));
    EXPECT_THAT(series_error("time_s,factro\n0,1\n"),
                HasSubstr("speed.csv:1: unknown column 'factro' (did you mean 'factor'?)"));
    EXPECT_THAT(series_error("time_s\n0\n"), HasSubstr("speed.csv:1: column 'factor' is missing"));
    EXPECT_THAT(series_error("time_s,time_s,factor\n0,0,1\n"),
                HasSubstr("speed.csv:1: column 'time_s' is given twice"));
}

TEST_F(CsvInputs, OfMeasuredTimesFitTheStrategy) {
    EXPECT_THAT(workers_error(std::string(kWorkers) + "0,0,1,1\n"),
                HasSubstr("job.measured.workers: replica 0, stage 0 is given twice"));
    EXPECT_THAT(workers_error(std::string(kWorkers) + "2,0,1,1\n"),
                HasSubstr("job.measured.workers: replica 2, stage 0 is not allowed (data is 2, pipeline is 2)"));
    EXPECT_THAT(workers_error(std::string(kWorkers) + "x,0,1,1\n"),
                HasSubstr("workers.csv:6: replica: x is not allowed (a whole number from 0)"));
    EXPECT_THAT(workers_error(kWorkers, {{"strategy.schedule", "zero-bubble"}}),
                HasSubstr("job.measured: not allowed with schedule: zero-bubble"));
    EXPECT_THAT(workers_error(kWorkers, {{"strategy.schedule", "interleaved"}, {"strategy.virtual_pipeline", "2"}}),
                HasSubstr("job.measured: not allowed with virtual_pipeline above 1"));
}

TEST(SpeedFactors, AreOneNumberOrASeries) {
    EXPECT_THAT(error_of(small_scenario(),
                         {{"disturbances.0",
                           "{start: 1 s, speed_factor: {gpu: 1, factor: 0.5, series: [{time: 0 s, factor: 1}]}}"}}),
                HasSubstr("speed_factor.factor: not allowed: a recorded series is given"));
    EXPECT_THAT(error_of(small_scenario(), {{"disturbances.0", "{start: 1 s, speed_factor: {gpu: 1}}"}}),
                HasSubstr("disturbances.0.speed_factor.factor: missing"));
    EXPECT_THAT(
        error_of(small_scenario(),
                 {{"disturbances.0", "{start: 1 s, speed_factor: {gpu: 1, series: [{time: 1 s, factor: 1}]}}"}}),
        HasSubstr("series.0.time: 1 s is not allowed (the first time is 0 s)"));
}

}  // namespace
}  // namespace headway::scenarios
