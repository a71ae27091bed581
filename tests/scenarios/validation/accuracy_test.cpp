#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "scenarios/validation/predict.h"
#include "tests/paths.h"

/// How far predictions may be from the published measurements in scenarios/measured/.
namespace headway::scenarios {
namespace {

using tests::source_directory;

PredictionSettings shipped_settings() {
    return {{source_directory() / "scenarios"}, std::nullopt};
}

MeasuredTable shipped_table(const std::string& name) {
    return read_measured_table(source_directory() / "scenarios" / "measured" / name);
}

struct TableBound {
    const char* file;
    double mape;         ///< the aim
    double worst;        ///< of a single row; 1e9 where there is no aim
    double reached;      ///< 0: the aim holds; else the figure that is reached, which may not get worse
    const char* reason;  ///< why the aim is not reached
};

constexpr double kNoAim = 1e9;

const TableBound kBounds[] = {
    {"korthikanti-2022.yaml", 0.023, 0.06, 0, ""},   {"megatron-sc21.yaml", 0.024, kNoAim, 0, ""},
    {"vtrain-multi-node.yaml", 0.07, kNoAim, 0, ""}, {"vtrain-single-node.yaml", 0.055, kNoAim, 0, ""},
    {"dgxc-h100.yaml", 0.02, kNoAim, 0, ""},         {"bloom-176b.yaml", 0.08, kNoAim, 0, ""},
    {"mtnlg-530b.yaml", 0.08, kNoAim, 0, ""},        {"unseen/mtnlg-530b.yaml", 0.08, kNoAim, 0, ""},
};

void PrintTo(const TableBound& bound, std::ostream* stream) {
    *stream << bound.file;
}

class IterationAccuracy : public ::testing::TestWithParam<TableBound> {};

TEST_P(IterationAccuracy, IsWithinItsBound) {
    const TableBound& bound = GetParam();
    const TablePrediction prediction = predict_table(shipped_table(bound.file), shipped_settings());
    for (const ValidationRow& row : prediction.figures.rows) EXPECT_TRUE(row.predicted) << row.id << ": " << row.reason;
    ASSERT_TRUE(prediction.figures.mape);
    RecordProperty("mape", std::to_string(*prediction.figures.mape));
    if (bound.reached > 0) {
        EXPECT_LE(*prediction.figures.mape, bound.reached);
        EXPECT_GT(*prediction.figures.mape, bound.mape) << "the aim is reached: take the exception out";
        return;
    }
    EXPECT_LE(*prediction.figures.mape, bound.mape);
    EXPECT_LE(*prediction.figures.worst, bound.worst);
}

INSTANTIATE_TEST_SUITE_P(Tables, IterationAccuracy, ::testing::ValuesIn(kBounds), [](const auto& instance) {
    std::string name = instance.param.file;
    name.resize(name.find('.'));
    std::replace(name.begin(), name.end(), '-', '_');
    std::replace(name.begin(), name.end(), '/', '_');
    return name;
});

TEST(CollectiveAccuracy, IsWithinTenPercentForMessagesOfAMegabyteOrMore) {
    double sum = 0.0;
    int rows = 0;
    for (const char* file : {"a100-inside-node", "a100-slingshot", "a100-two-dgx-nodes", "h100-ten-nodes"}) {
        const TablePrediction prediction =
            predict_table(shipped_table("collectives/" + std::string(file) + ".yaml"), shipped_settings());
        for (const ValidationRow& row : prediction.figures.rows) {
            EXPECT_TRUE(row.predicted) << row.id << ": " << row.reason;
        }
        ASSERT_TRUE(prediction.figures.large_messages) << file;
        sum += *prediction.figures.large_messages->mape * prediction.figures.large_messages->rows;
        rows += prediction.figures.large_messages->rows;
    }
    EXPECT_EQ(rows, 203);
    EXPECT_LE(sum / rows, 0.10);
}

/// Mean absolute error of the rows under one schedule.
double slow_link_error(const MeasuredTable& table, const TablePrediction& prediction, Schedule schedule) {
    const auto& rows = std::get<std::vector<SlowLinkRow>>(table.rows);
    double sum = 0.0;
    int count = 0;
    for (std::size_t index = 0; index < rows.size(); ++index) {
        const ValidationRow& row = prediction.figures.rows[index];
        EXPECT_TRUE(row.predicted) << row.id << ": " << row.reason;
        if (rows[index].job.layout.schedule != schedule || !row.error) continue;
        sum += std::abs(*row.error);
        ++count;
    }
    return sum / count;
}

TEST(SlowLinkAccuracy, IsWithinEightPercentUnderBothSchedules) {
    const MeasuredTable table = shipped_table("slow-pipeline-links.yaml");
    const TablePrediction prediction = predict_table(table, shipped_settings());
    EXPECT_LE(*prediction.figures.mape, 0.08);
    EXPECT_LE(slow_link_error(table, prediction, Schedule::kOneForwardOneBackward), 0.08);
    EXPECT_LE(slow_link_error(table, prediction, Schedule::kZeroBubble), 0.08);
}

TEST(SlowLinkAccuracy, KeepsTheOrderOfTheSchedules) {
    const MeasuredTable table = shipped_table("slow-pipeline-links.yaml");
    const TablePrediction prediction = predict_table(table, shipped_settings());
    const auto& rows = std::get<std::vector<SlowLinkRow>>(table.rows);
    int pairs = 0;
    for (std::size_t a = 0; a < rows.size(); ++a) {
        if (rows[a].job.layout.schedule != Schedule::kOneForwardOneBackward) continue;
        for (std::size_t b = 0; b < rows.size(); ++b) {
            if (rows[b].job.layout.schedule != Schedule::kZeroBubble || rows[a].slow_hops != rows[b].slow_hops ||
                rows[a].added_delay_ms != rows[b].added_delay_ms) {
                continue;
            }
            ++pairs;
            EXPECT_EQ(rows[a].slowdown < rows[b].slowdown,
                      *prediction.figures.rows[a].predicted < *prediction.figures.rows[b].predicted)
                << rows[a].id << " and " << rows[b].id;
        }
    }
    EXPECT_GE(pairs, 14);
}

TEST(RecordedJobAccuracy, IsWithinItsBoundGivenTheMedians) {
    const std::map<std::string, double> bounds = {{"AR", 0.02}, {"ST", 0.03}};
    const TablePrediction prediction = predict_table(shipped_table("recorded-jobs.yaml"), shipped_settings());
    ASSERT_EQ(prediction.figures.rows.size(), bounds.size());
    for (const ValidationRow& row : prediction.figures.rows) {
        ASSERT_TRUE(row.error) << row.reason;
        EXPECT_LE(std::abs(*row.error), bounds.at(row.id)) << row.id;
    }
}

TEST(LayerAccuracy, IsWithinTenPercentOfTheMeasuredLayer) {
    const TablePrediction prediction = predict_table(shipped_table("korthikanti-2022-layer.yaml"), shipped_settings());
    EXPECT_EQ(prediction.figures.rows.size(), 10u);
    for (const ValidationRow& row : prediction.figures.rows) EXPECT_TRUE(row.predicted) << row.id << ": " << row.reason;
    EXPECT_LE(*prediction.figures.mape, 0.10);
}

}  // namespace
}  // namespace headway::scenarios
