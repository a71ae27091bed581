#include "cli/summary_bytes.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "scenarios/record/report.h"

namespace headway::tests {
namespace {

/// Every figure has a value of its own, so that one that is left out or swapped shows.
scenarios::RunSummary full_summary() {
    scenarios::RunSummary s;
    s.scenario = "a name";
    s.policy = "static";
    s.seed = 3;
    s.layout = "t8 p8";
    s.gpus = 64;
    s.complete = true;
    s.iterations = 101;
    s.iterations_completed = 103;
    s.iterations_lost = 2;
    s.wall_ns = 1'000'003;
    s.healthy_iteration_ns = 9001;
    s.iteration_mean_s = 1.1;
    s.iteration_p50_s = 1.2;
    s.iteration_p95_s = 1.3;
    s.tokens_per_s = 1.4;
    s.tflops_per_gpu = 1.5;
    s.model_tflops_per_gpu = 1.6;
    s.mfu = 0.17;
    s.goodput = 0.18;
    s.time_share = {0.31, 0.12, 0.13, 0.14, 0.15, 0.05, 0.1};
    s.checkpoint_ns = 11;
    s.loss_ns = 12;
    s.switch_ns = 13;
    s.repeated_ns = 14;
    s.uncovered_ns = 15;
    scenarios::DisturbanceCost cost;
    cost.name = "hot";
    cost.kind = "airflow";
    cost.start_ns = 21;
    cost.duration_ns = 22;
    cost.slowed_ns = 23;
    cost.paused_ns = 24;
    cost.repeated_ns = 25;
    cost.iterations_lost = 26;
    cost.share = 0.27;
    cost.what = {"one", "two"};
    s.disturbances = {cost, cost};
    scenarios::SlowGpu gpu;
    gpu.figures = {31, 0.32, 0.33, 34.0};
    gpu.node = 35;
    gpu.slot = 36;
    gpu.rack = 37;
    gpu.stage = 38;
    gpu.replica = 39;
    s.slowest = {gpu};
    s.decisions = 41;
    s.switches = 42;
    s.decisions_without_choice = 43;
    s.handed_over = 44;
    s.rolled_back = 45;
    s.shadow = "greedy";
    s.shadow_differs = 46;
    s.shadow_regret_ns = -47;
    return s;
}

TEST(SummaryBytes, BringBackEveryFigure) {
    const scenarios::RunSummary summary = full_summary();
    const scenarios::RunSummary back = cli::summary_from_bytes(cli::to_bytes(summary));
    EXPECT_EQ(scenarios::report_json(back), scenarios::report_json(summary));
    EXPECT_EQ(scenarios::report_text(back), scenarios::report_text(summary));
    EXPECT_EQ(cli::to_bytes(back), cli::to_bytes(summary));
}

TEST(SummaryBytes, RejectBytesThatAreCutOffOrTooLong) {
    const std::string bytes = cli::to_bytes(full_summary());
    for (std::size_t size = 0; size < bytes.size(); size += 7) {
        EXPECT_THROW(cli::summary_from_bytes(bytes.substr(0, size)), std::runtime_error) << size;
    }
    EXPECT_THROW(cli::summary_from_bytes(bytes + "x"), std::runtime_error);
}

}  // namespace
}  // namespace headway::tests
