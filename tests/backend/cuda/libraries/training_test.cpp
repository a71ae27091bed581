#include <gtest/gtest.h>

#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backend/cuda/nccl_communicators.h"
#include "backend/training/trainer.h"
#include "tests/backend/cuda/libraries/thread_control.h"
#include "tests/backend/training/training_case.h"

/// Training by the whole CUDA backend, kernels emulated and libraries faked: the order of streams and events is real. A
/// missing wait would give a kernel what is not there yet.
namespace headway::tests {
namespace {

using backend::CudaDevice;
using backend::DataType;

/// Losses and gradient norms of all steps, of every rank.
std::vector<std::vector<double>> curves_on_devices(const TrainingCase& training) {
    const int size = training.plan.layout.world_size();
    ThreadJob job(size);
    std::vector<std::vector<double>> curves(static_cast<std::size_t>(size));
    std::vector<std::string> errors(static_cast<std::size_t>(size));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
        threads.emplace_back([&, rank] {
            ThreadControl control(job, rank);
            try {
                CudaDevice device(rank, training.type);
                backend::NcclCommunicatorMaker communicators(device, control,
                                                             {std::chrono::milliseconds(60'000), false});
                const PatternTokens tokens(training.job.model.vocab);
                backend::Trainer trainer(training.job, training.plan, rank, device, communicators, tokens);
                trainer.initialise(training.seed);
                for (int step = 0; step < training.steps; ++step) {
                    const backend::StepResult result = trainer.step(step, training.seed, nullptr);
                    curves[static_cast<std::size_t>(rank)].push_back(result.loss);
                    curves[static_cast<std::size_t>(rank)].push_back(result.gradient_norm);
                }
            } catch (const std::exception& error) {
                errors[static_cast<std::size_t>(rank)] = error.what();
                job.abort(error.what());
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& error : errors) EXPECT_EQ(error, "");
    return curves;
}

scenarios::Layout eight_ranks(scenarios::Schedule schedule) {
    scenarios::Layout layout;
    layout.tensor = layout.pipeline = layout.data = 2;
    layout.sequence_parallel = true;
    layout.schedule = schedule;
    if (schedule == scenarios::Schedule::kInterleaved) layout.virtual_pipeline = 2;
    layout.distributed_optimizer = true;
    layout.overlap_grad_reduce = layout.overlap_param_gather = true;
    return layout;
}

/// The curve of the host, in float32 and alone.
std::vector<double> curve_of_the_host(TrainingCase training) {
    training.type = DataType::kFloat32;
    training.plan = even_plan(training.job, scenarios::Layout());
    const TrainingOutcome outcome = train(training);
    std::vector<double> curve;
    for (std::size_t i = 0; i < outcome.losses.size(); ++i) {
        curve.push_back(outcome.losses[i]);
        curve.push_back(outcome.gradient_norms[i]);
    }
    return curve;
}

void expect_curve_of_the_host(TrainingCase training, double tolerance) {
    const auto curves = curves_on_devices(training);
    const std::vector<double> expected = curve_of_the_host(training);
    for (const std::vector<double>& own : curves) {
        ASSERT_EQ(own.size(), expected.size());
        EXPECT_EQ(own, curves.front()) << "the same on every rank";
    }
    EXPECT_LE(largest_difference(curves.front(), expected), tolerance);
}

TEST(TrainingOnCuda, GivesTheCurveOfOneProcessOfTheHost) {
    for (const bool llama : {false, true}) {
        SCOPED_TRACE(llama ? "Llama" : "GPT-2");
        TrainingCase training;
        training.job = llama ? llama_in_small() : gpt2_in_small();
        training.type = DataType::kFloat32;
        training.steps = 3;
        training.plan = even_plan(training.job, eight_ranks(scenarios::Schedule::kOneForwardOneBackward));
        expect_curve_of_the_host(training, 1e-5);
    }
}

/// Messages go round the stages, posted before they can be sent.
TEST(TrainingOnCuda, GivesItWithInterleavedStagesToo) {
    TrainingCase training;
    training.job = gpt2_in_small();
    training.type = DataType::kFloat32;
    training.steps = 3;
    training.plan = even_plan(training.job, eight_ranks(scenarios::Schedule::kInterleaved));
    expect_curve_of_the_host(training, 1e-5);
}

TEST(TrainingOnCuda, FollowsItInBfloat16) {
    TrainingCase training;
    training.job = gpt2_in_small();
    training.type = DataType::kBfloat16;
    training.steps = 3;
    training.plan = even_plan(training.job, eight_ranks(scenarios::Schedule::kOneForwardOneBackward));
    expect_curve_of_the_host(training, 2e-2);
}

}  // namespace
}  // namespace headway::tests
