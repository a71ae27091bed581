#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/backend/training/training_case.h"

/// Training with weights and activations of bfloat16 and float32 master weights, as on GPUs: the emulated device of
/// tests/backend/device/bfloat16_device.h.
namespace headway::tests {
namespace {

using backend::DataType;
using scenarios::Job;
using scenarios::Layout;

/// Largest difference of two curves of losses over the first loss.
double largest_gap(const std::vector<double>& a, const std::vector<double>& b) {
    double gap = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) gap = std::max(gap, std::abs(a[i] - b[i]));
    return gap / b.front();
}

/// Of the weights, over all blocks.
double summed_distance(const ModelState& a, const ModelState& b) {
    double sum = 0.0;
    for (const auto& [name, block] : a)
        for (std::size_t i = 0; i < block.master.size(); ++i) sum += std::abs(block.master[i] - b.at(name).master[i]);
    return sum;
}

void expect_near_float64(const Job& job) {
    const TrainingOutcome exact = train({.job = job, .plan = even_plan(job, {})});
    const TrainingOutcome alone = train({.job = job, .plan = even_plan(job, {}), .type = DataType::kBfloat16});
    Layout layout;
    layout.tensor = layout.pipeline = layout.data = 2;
    layout.sequence_parallel = layout.distributed_optimizer = true;
    layout.overlap_grad_reduce = layout.overlap_param_gather = true;
    const TrainingOutcome split = train({.job = job, .plan = even_plan(job, layout), .type = DataType::kBfloat16});
    EXPECT_LT(exact.losses.back(), 0.9 * exact.losses.front()) << "nothing was learned";
    EXPECT_LT(largest_gap(alone.losses, exact.losses), 0.02);
    EXPECT_LT(largest_gap(split.losses, exact.losses), 0.02);
    EXPECT_GT(largest_gap(alone.losses, exact.losses), 1e-6) << "was not rounded";
}

TEST(MixedPrecision, Gpt2LearnsAsInFloat64) {
    expect_near_float64(gpt2_in_small());
}

TEST(MixedPrecision, LlamaLearnsAsInFloat64) {
    expect_near_float64(llama_in_small());
}

/// Steps of a rate this small vanish in bfloat16: only the master weights can add them up.
TEST(MixedPrecision, SmallUpdatesAddUpInTheMasterWeights) {
    Job job = gpt2_in_small();
    job.training->warmup_iterations = 0;
    const auto run = [&](double rate, DataType type) {
        job.training->learning_rate = job.training->final_learning_rate = rate;
        return train({.job = job, .plan = even_plan(job, {}), .type = type}).state;
    };
    const ModelState still = run(0.0, DataType::kFloat64), exact = run(1e-5, DataType::kFloat64);
    const ModelState mixed = run(1e-5, DataType::kBfloat16);
    EXPECT_LT(summed_distance(mixed, exact), 0.1 * summed_distance(exact, still));
}

}  // namespace
}  // namespace headway::tests
