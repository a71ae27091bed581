#include "scenarios/record/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "scenarios/language/config_error.h"
#include "scenarios/record/report.h"
#include "scenarios/record/run_writer.h"
#include "tests/scenarios/record/small_run.h"

namespace headway::tests {
namespace {

using namespace scenarios;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

RunSummary small_summary() {
    SummarySink sink;
    play_small_run(sink);
    return sink.summary();
}

double sum_of(const TimeFractions& share) {
    return share.compute + share.bubble + share.tensor + share.pipeline + share.data + share.straggling +
           share.recovery;
}

TEST(Summary, CountsUsefulIterationsWithoutThoseRolledBack) {
    const RunSummary summary = small_summary();
    EXPECT_EQ(summary.iterations_completed, 7);
    EXPECT_EQ(summary.iterations_lost, 2);
    EXPECT_EQ(summary.iterations, 5);
    EXPECT_EQ(summary.wall_ns, 131 * kSecond);
    EXPECT_EQ(summary.decisions, 2);
    EXPECT_EQ(summary.switches, 0);
    EXPECT_TRUE(summary.complete);
}

TEST(Summary, KnowsTheLossOfJobsThatReallyTrained) {
    EXPECT_FALSE(small_summary().first_loss);
    EXPECT_THAT(report_json(small_summary()), Not(HasSubstr("\"loss\":{")));
    const ScratchFolder folder("loss");
    {
        RecordWriter writer(folder / "a.run.jsonl", {});
        writer.begin(small_header());
        for (int i = 0; i < 3; ++i) {
            IterationEvent event = small_iteration(i, i * 10, 10);
            event.loss = 5.5 - i;
            writer.iteration(event);
        }
        RunFooter footer;
        footer.wall_ns = 30 * kSecond;
        writer.end(footer);
    }
    const RunSummary summary = summarize_record(folder / "a.run.jsonl").summary;
    EXPECT_EQ(summary.first_loss, 5.5);
    EXPECT_EQ(summary.last_loss, 3.5);
    EXPECT_THAT(report_text(summary), HasSubstr("5.5000 at first, 3.5000 at last"));
    EXPECT_THAT(report_json(summary), HasSubstr(R"("loss":{"first":5.5,"last":3.5})"));
}

TEST(Summary, GivesMeanAndPercentilesOfIterationTime) {
    const RunSummary summary = small_summary();  // 10 10 10 10 11 12 12
    EXPECT_DOUBLE_EQ(summary.iteration_mean_s, 75.0 / 7.0);
    EXPECT_DOUBLE_EQ(summary.iteration_p50_s, 10.0);
    EXPECT_DOUBLE_EQ(summary.iteration_p95_s, 12.0);
}

TEST(Summary, RatesUsefulTokensOverWallTime) {
    const RunSummary summary = small_summary();
    EXPECT_DOUBLE_EQ(summary.tokens_per_s, 5 * 1000 / 131.0);
    EXPECT_DOUBLE_EQ(summary.goodput, 5 * 10 / 131.0);
}

TEST(Summary, RatesFlopsWhileIterating) {
    const RunSummary summary = small_summary();
    const double mean_s = 75.0 / 7.0;
    EXPECT_DOUBLE_EQ(summary.tflops_per_gpu, 4e15 / mean_s / 4 * 1e-12);
    EXPECT_DOUBLE_EQ(summary.model_tflops_per_gpu, 3e15 / mean_s / 4 * 1e-12);
    EXPECT_DOUBLE_EQ(summary.mfu, 3e15 / mean_s / 1e15);
}

TEST(Summary, SplitsTheWallTimeCompletely) {
    const TimeFractions share = small_summary().time_share;
    EXPECT_DOUBLE_EQ(share.compute, 30 / 131.0);
    EXPECT_DOUBLE_EQ(share.bubble, 10 / 131.0);
    EXPECT_DOUBLE_EQ(share.tensor, 5 / 131.0);
    EXPECT_DOUBLE_EQ(share.pipeline, 2.5 / 131.0);
    EXPECT_DOUBLE_EQ(share.data, 2.5 / 131.0);
    EXPECT_DOUBLE_EQ(share.straggling, 4 / 131.0);
    EXPECT_DOUBLE_EQ(share.recovery, (1 + 55 + 21) / 131.0);
    EXPECT_NEAR(sum_of(share), 1.0, 1e-15);
}

TEST(Summary, ChargesEveryDisturbanceOnce) {
    const RunSummary summary = small_summary();
    ASSERT_EQ(summary.disturbances.size(), 2u);
    const DisturbanceCost& airflow = summary.disturbances[0];
    EXPECT_EQ(airflow.kind, "airflow");
    EXPECT_EQ(airflow.slowed_ns, 5 * kSecond);
    EXPECT_EQ(airflow.cost_ns(), 5 * kSecond);
    EXPECT_DOUBLE_EQ(airflow.share, 5 / 131.0);
    const DisturbanceCost& loss = summary.disturbances[1];
    EXPECT_EQ(loss.paused_ns, 55 * kSecond);
    EXPECT_EQ(loss.repeated_ns, 20 * kSecond) << "of the 21 s repeated, 1 s is the airflow's";
    EXPECT_EQ(loss.iterations_lost, 2);
    EXPECT_DOUBLE_EQ(loss.share, 75 / 131.0);
    EXPECT_THAT(loss.what, ElementsAre(HasSubstr("waited 40 s for its repair")));
}

TEST(Summary, NamesTheSlowestGpusAndWhatTheyDo) {
    const RunSummary summary = small_summary();
    ASSERT_EQ(summary.slowest.size(), 2u);
    EXPECT_EQ(summary.slowest[0].figures.gpu, 1);
    EXPECT_EQ(summary.slowest[0].node, 0);
    EXPECT_EQ(summary.slowest[0].slot, 1);
    EXPECT_EQ(summary.slowest[0].stage, 0);
    EXPECT_EQ(summary.slowest[0].replica, 1);
    EXPECT_EQ(summary.slowest[1].figures.gpu, 3);
    EXPECT_EQ(summary.slowest[1].node, 1);
    EXPECT_EQ(summary.slowest[1].rack, 1);
    EXPECT_EQ(summary.slowest[1].stage, 1);
    EXPECT_EQ(summary.slowest[1].replica, 1);
}

TEST(Summary, ChargesWorkThatWasLostTwiceToTheLossThatRepeatsIt) {
    SummarySink sink;
    RunHeader header = small_header();
    header.disturbances = {{"first", "node_loss", 0, -1}, {"second", "node_loss", 0, -1}};
    sink.begin(header);
    const auto iteration = [&](std::int64_t index, bool repeats) {
        IterationEvent event = small_iteration(index, 0, 10, repeats);
        event.disturbance_cost_ns = {};
        sink.iteration(event);
    };
    const auto loss = [&](int disturbance, std::int64_t lost) {
        sink.pause({PauseEvent::Reason::kLoss, 0, 100 * kSecond, lost, disturbance, ""});
    };
    for (int i = 0; i < 4; ++i) iteration(i, false);
    loss(0, 4);          // all four again
    iteration(0, true);  // first
    iteration(1, true);  // first
    loss(1, 1);          // of those, the last again
    iteration(1, true);  // second
    iteration(2, true);  // first: it was never trained again before the second loss
    iteration(3, true);
    sink.end({true, 290 * kSecond, 0, 0, {}});
    const RunSummary summary = sink.summary();
    EXPECT_EQ(summary.disturbances[0].repeated_ns, 40 * kSecond);
    EXPECT_EQ(summary.disturbances[1].repeated_ns, 10 * kSecond);
    EXPECT_EQ(summary.iterations, 9 - 5);
    EXPECT_EQ(summary.repeated_ns, 50 * kSecond);
}

TEST(Summary, CountsTimeThatNoEventCoversAsRecovery) {
    SummarySink sink;
    sink.begin(small_header());
    sink.iteration(small_iteration(0, 0, 10));
    sink.end({true, 40 * kSecond, 0, 0, {}});
    const RunSummary summary = sink.summary();
    EXPECT_EQ(summary.uncovered_ns, 30 * kSecond);
    EXPECT_DOUBLE_EQ(summary.time_share.recovery, 0.75);
    EXPECT_DOUBLE_EQ(sum_of(summary.time_share), 1.0);
}

TEST(Summary, OfARunWithoutIterationsIsZeroAndNotUndefined) {
    SummarySink sink;
    sink.begin(small_header());
    const RunSummary before = sink.summary();
    EXPECT_FALSE(before.complete);
    EXPECT_EQ(before.tokens_per_s, 0.0);
    EXPECT_EQ(before.mfu, 0.0);
    sink.end({false, 5 * kSecond, 0, 0, {}});
    const RunSummary after = sink.summary();
    EXPECT_FALSE(after.complete);
    EXPECT_EQ(after.goodput, 0.0);
    EXPECT_DOUBLE_EQ(after.time_share.recovery, 1.0);
}

TEST(Summary, NeedsARunThatBegan) {
    EXPECT_THROW(SummarySink().summary(), std::logic_error);
}

TEST(Summary, OfARecordIsThatOfTheRun) {
    const ScratchFolder folder("summary-record");
    {
        RecordWriter writer(folder / "a.run.jsonl");
        play_small_run(writer);
    }
    const RecordSummary read = summarize_record(folder / "a.run.jsonl");
    const RunSummary told = small_summary();
    EXPECT_THAT(read.problem, IsEmpty());
    EXPECT_EQ(read.summary.scenario, "small");
    EXPECT_EQ(read.summary.layout, told.layout);
    EXPECT_EQ(read.summary.tokens_per_s, told.tokens_per_s);
    EXPECT_EQ(read.summary.mfu, told.mfu);
    EXPECT_EQ(read.summary.time_share.recovery, told.time_share.recovery);
    EXPECT_EQ(read.summary.disturbances[1].cost_ns(), told.disturbances[1].cost_ns());
    EXPECT_EQ(read.summary.slowest.size(), told.slowest.size());
}

TEST(Summary, OfACutRecordSaysSo) {
    const ScratchFolder folder("summary-cut");
    {
        RecordWriter writer(folder / "a.run.jsonl");
        play_small_run(writer, /*ended=*/false);
    }
    const RecordSummary read = summarize_record(folder / "a.run.jsonl");
    EXPECT_THAT(read.problem, HasSubstr("unfinished"));
    EXPECT_FALSE(read.summary.complete);
    EXPECT_EQ(read.summary.iterations, 5);
    EXPECT_EQ(read.summary.wall_ns, 131 * kSecond);
}

TEST(Summary, RefusesRecordsThatHoldNoIterations) {
    const ScratchFolder folder("summary-level");
    {
        RecordWriter writer(folder / "a.run.jsonl", {RecordLevel::kDecisions, {}});
        play_small_run(writer);
    }
    EXPECT_THROW(summarize_record(folder / "a.run.jsonl"), ConfigError);
    write_file(folder / "b.run.jsonl", "{}\n");
    EXPECT_THROW(summarize_record(folder / "b.run.jsonl"), ConfigError);
}

TEST(NearestRank, IsTheSmallestValueThatEnoughDoNotExceed) {
    EXPECT_EQ(nearest_rank({5}, 50), 5);
    EXPECT_EQ(nearest_rank({2, 1}, 50), 1);
    EXPECT_EQ(nearest_rank({3, 1, 2}, 50), 2);
    std::vector<std::int64_t> hundred;
    for (int i = 100; i >= 1; --i) hundred.push_back(i);
    EXPECT_EQ(nearest_rank(hundred, 95), 95);
    EXPECT_EQ(nearest_rank(hundred, 1), 1);
    EXPECT_EQ(nearest_rank(hundred, 100), 100);
    EXPECT_THROW(nearest_rank({}, 50), std::invalid_argument);
    EXPECT_THROW(nearest_rank({1}, 0), std::invalid_argument);
}

}  // namespace
}  // namespace headway::tests
