#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "scenarios/timing/evaluator.h"
#include "scenarios/validation/measured_table.h"
#include "tests/paths.h"

/// The programs' rules of messages against what measured runs did, with durations that the tables give or that one
/// healthy iteration fixes: no cost model, no fitted constant.
namespace headway::scenarios {
namespace {

std::filesystem::path measured_file(const std::string& name) {
    return tests::source_directory() / "scenarios" / "measured" / name;
}

std::int64_t nanoseconds(double milliseconds) {
    return std::llround(milliseconds * 1e6);
}

/// One replica of the slow-link runs: 5, 6, 6, ... 5 layers, and the logits as 0.83 of a layer (vocabulary 51,200,
/// hidden 5120).
class SlowLinkJob {
  public:
    SlowLinkJob(const SlowLinkRow& row, double layer_ms, double message_ms) : layout_(row.job.layout) {
        const auto stages = static_cast<std::size_t>(layout_.pipeline);
        const int layers = (row.job.model.layers + 2) / layout_.pipeline;
        for (std::size_t s = 0; s < stages; ++s) {
            const bool last = s + 1 == stages;
            const double units = layers - (s == 0 || last ? 1 : 0) + (last ? 0.83 : 0.0);
            times_.forward.push_back(nanoseconds(units * layer_ms));
            times_.backward.push_back(nanoseconds(2.0 * units * layer_ms));
        }
        times_.backward_input = times_.forward;
        times_.backward_weight = times_.forward;
        times_.send_activation.assign(stages, nanoseconds(message_ms));
        times_.send_gradient.assign(stages, nanoseconds(message_ms));
        plan_.layout = layout_;
        plan_.gpu_of_rank.resize(stages);
        std::iota(plan_.gpu_of_rank.begin(), plan_.gpu_of_rank.end(), 0);
        plan_.layers_of_cell.assign(stages, layers);
        plan_.micro_batches_of_replica = {row.job.global_batch / row.job.micro_batch};
    }

    double slowdown(const std::vector<int>& slow_hops, double delay_ms) const {
        Evaluator evaluator(plan_, false);
        const Duration healthy = evaluator.iteration_time(times_);
        StepTimes slow = times_;
        slow.delay_activation.assign(slow.forward.size(), 0);
        slow.delay_gradient.assign(slow.forward.size(), 0);
        for (int hop : slow_hops) {
            slow.delay_activation[static_cast<std::size_t>(hop)] = nanoseconds(delay_ms);
            slow.delay_gradient[static_cast<std::size_t>(hop) + 1] = nanoseconds(delay_ms);
        }
        return evaluator.iteration_time(slow) / healthy;
    }

  private:
    Layout layout_;
    Plan plan_;
    StepTimes times_;
};

constexpr double kLayerMs = 1.48;    // the healthy 1F1B iteration of 0.835 s
constexpr double kMessageMs = 0.25;  // 10.5 MB through a 400 Gbit/s NIC

struct SlowLinkErrors {
    double mean = 0.0;
    int rows = 0;
};

SlowLinkErrors errors_of(Schedule schedule) {
    const MeasuredTable table = read_measured_table(measured_file("slow-pipeline-links.yaml"));
    SlowLinkErrors errors;
    for (const SlowLinkRow& row : std::get<std::vector<SlowLinkRow>>(table.rows)) {
        if (row.job.layout.schedule != schedule) continue;
        const double predicted = SlowLinkJob(row, kLayerMs, kMessageMs).slowdown(row.slow_hops, row.added_delay_ms);
        errors.mean += std::abs(predicted / row.slowdown - 1.0);
        ++errors.rows;
    }
    errors.mean /= errors.rows;
    return errors;
}

TEST(SlowLinks, BlockingBatchesExplainOneForwardOneBackward) {
    const SlowLinkErrors errors = errors_of(Schedule::kOneForwardOneBackward);
    EXPECT_EQ(errors.rows, 14);
    EXPECT_LE(errors.mean, 0.03);
    RecordProperty("mean_absolute_error", std::to_string(errors.mean));
}

TEST(SlowLinks, LaunchQueueAndSharedStreamExplainZeroBubble) {
    const SlowLinkErrors errors = errors_of(Schedule::kZeroBubble);
    EXPECT_EQ(errors.rows, 14);
    EXPECT_LE(errors.mean, 0.04);
    RecordProperty("mean_absolute_error", std::to_string(errors.mean));
}

TEST(SlowLinks, HurtZeroBubbleMoreThanOneForwardOneBackward) {
    const MeasuredTable table = read_measured_table(measured_file("slow-pipeline-links.yaml"));
    std::map<std::pair<std::vector<int>, double>, std::map<Schedule, double>> cases;
    for (const SlowLinkRow& row : std::get<std::vector<SlowLinkRow>>(table.rows))
        cases[{row.slow_hops, row.added_delay_ms}][row.job.layout.schedule] =
            SlowLinkJob(row, kLayerMs, kMessageMs).slowdown(row.slow_hops, row.added_delay_ms);
    EXPECT_GE(cases.size(), 12u);
    for (const auto& [key, predicted] : cases) {
        ASSERT_EQ(predicted.size(), 2u);
        EXPECT_GT(predicted.at(Schedule::kZeroBubble), predicted.at(Schedule::kOneForwardOneBackward))
            << "hop " << key.first.front() << ", " << key.second << " ms";
    }
}

/// A recorded job from the medians of its operations. All of the rest of the step is serial in these jobs.
double recorded_step_s(const RecordedJobRow& row) {
    Plan plan;
    plan.layout = row.layout;
    plan.layout.distributed_optimizer = true;
    plan.gpu_of_rank.resize(static_cast<std::size_t>(plan.layout.world_size()));
    std::iota(plan.gpu_of_rank.begin(), plan.gpu_of_rank.end(), 0);
    plan.layers_of_cell.assign(static_cast<std::size_t>(plan.workers()), 1);
    plan.micro_batches_of_replica.assign(static_cast<std::size_t>(plan.layout.data), row.workers.front().micro_batches);
    const auto workers = static_cast<std::size_t>(plan.workers());
    const auto stages = static_cast<std::size_t>(plan.layout.pipeline);
    StepTimes times;
    for (auto* cells :
         {&times.forward, &times.backward, &times.send_activation, &times.send_gradient, &times.optimizer})
        cells->assign(workers, 0);
    for (auto* cells : {&times.reduce_gradients, &times.gather_parameters, &times.reduce_tied_embedding})
        cells->assign(stages, 0);
    for (const RecordedWorker& w : row.workers) {
        const auto at = static_cast<std::size_t>(plan.worker(w.replica, w.stage));
        const auto stage = static_cast<std::size_t>(w.stage);
        times.forward[at] = nanoseconds(w.forward_ms);
        times.backward[at] = nanoseconds(w.backward_ms);
        times.send_activation[at] = nanoseconds(w.send_activation_ms);
        times.send_gradient[at] = nanoseconds(w.send_gradient_ms);
        times.optimizer[at] = nanoseconds(w.optimizer_ms + w.reduce_norms_ms);
        times.reduce_gradients[stage] = std::max(times.reduce_gradients[stage], nanoseconds(w.reduce_gradients_ms));
        times.gather_parameters[stage] = std::max(times.gather_parameters[stage], nanoseconds(w.gather_parameters_ms));
        times.reduce_tied_embedding[stage] =
            std::max(times.reduce_tied_embedding[stage], nanoseconds(w.reduce_embedding_ms));
    }
    return Evaluator(plan, true).iteration_time(times).s();
}

TEST(RecordedJobs, StepIsWhatItsOperationsAddUpTo) {
    const MeasuredTable table = read_measured_table(measured_file("recorded-jobs.yaml"));
    const std::map<std::string, double> bounds = {{"AR", 0.02}, {"ST", 0.03}};
    int rows = 0;
    for (const RecordedJobRow& row : std::get<std::vector<RecordedJobRow>>(table.rows)) {
        const double error = recorded_step_s(row) / row.step_s - 1.0;
        EXPECT_LE(std::abs(error), bounds.at(row.id)) << row.id << ": " << error;
        RecordProperty("error_" + row.id, std::to_string(error));
        ++rows;
    }
    EXPECT_EQ(rows, 2);
}

}  // namespace
}  // namespace headway::scenarios
