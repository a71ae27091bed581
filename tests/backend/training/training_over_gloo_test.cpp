#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backend/host/host_device.h"
#include "backend/training/plan_place.h"
#include "tests/backend/local_ranks.h"
#include "tests/backend/training/training_case.h"

/// The same over the transport of a real job: ranks are processes that talk over TCP.
namespace headway::tests {
namespace {

using backend::LocalRank;
using backend::RankOutcome;
using scenarios::Job;
using scenarios::Layout;
using scenarios::Plan;
using scenarios::Schedule;

/// Losses and norms of all steps as bytes; empty from an idle process.
std::string trained_curve(LocalRank& rank, const TrainingCase& training) {
    const PatternTokens tokens(training.job.model.vocab);
    const std::unique_ptr<backend::Device> device = backend::make_host_device(training.type);
    backend::Trainer trainer(training.job, training.plan, rank.rank, *device, rank.communicators, tokens);
    trainer.initialise(training.seed);
    std::vector<double> curve;
    for (int step = 0; step < training.steps; ++step) {
        const backend::StepResult result = trainer.step(step, training.seed, nullptr);
        curve.push_back(result.loss);
        curve.push_back(result.gradient_norm);
    }
    if (trainer.rank() < 0) return {};
    return std::string(reinterpret_cast<const char*>(curve.data()), curve.size() * sizeof(double));
}

std::vector<double> numbers_of(const std::string& bytes) {
    std::vector<double> numbers(bytes.size() / sizeof(double));
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return numbers;
}

void expect_curve_of_one_process(const TrainingCase& training) {
    const int processes = training.processes > 0 ? training.processes : training.plan.layout.world_size();
    const std::vector<std::string> curves =
        backend::run_ranks(processes, [&](LocalRank& rank) { return trained_curve(rank, training); });
    TrainingCase one = training;
    one.plan = even_plan(training.job, Layout());
    one.processes = 1;
    const TrainingOutcome expected = train(one);
    std::vector<double> curve;
    for (std::size_t i = 0; i < expected.losses.size(); ++i) {
        curve.push_back(expected.losses[i]);
        curve.push_back(expected.gradient_norms[i]);
    }
    ASSERT_EQ(curves.size(), static_cast<std::size_t>(processes));
    const std::string& first = curves[static_cast<std::size_t>(training.plan.gpu_of_rank.front())];
    for (int process = 0; process < processes; ++process) {
        const bool idle = backend::place_in_plan(training.plan, process).idle();
        EXPECT_EQ(curves[static_cast<std::size_t>(process)], idle ? std::string() : first);
    }
    EXPECT_LE(largest_difference(numbers_of(first), curve),
              training.type == backend::DataType::kFloat64 ? 1e-11 : 1e-5);
}

Layout eight_ranks(Schedule schedule) {
    Layout layout;
    layout.tensor = layout.pipeline = layout.data = 2;
    layout.sequence_parallel = true;
    layout.schedule = schedule;
    if (schedule == Schedule::kInterleaved) layout.virtual_pipeline = 2;
    layout.distributed_optimizer = true;
    layout.overlap_grad_reduce = layout.overlap_param_gather = true;
    return layout;
}

TEST(TrainingOverGloo, EightRanksInterleavedOverlappedAndApart) {
    const Job job = gpt2_in_small();
    Layout layout = eight_ranks(Schedule::kInterleaved);
    layout.overlap_pipeline_comm = true;
    Plan plan = even_plan(job, layout);
    plan.layers_of_cell = {1, 1, 1, 1, 0, 1, 2, 1};
    plan.micro_batches_of_replica = {2, 6};
    expect_curve_of_one_process({.job = job, .plan = plan, .steps = 4});
}

TEST(TrainingOverGloo, EightRanksInFloat32) {
    const Job job = llama_in_small();
    expect_curve_of_one_process({.job = job,
                                 .plan = even_plan(job, eight_ranks(Schedule::kOneForwardOneBackward)),
                                 .steps = 8,
                                 .type = backend::DataType::kFloat32});
}

TEST(TrainingOverGloo, ZeroBubbleWithIdleProcesses) {
    const Job job = gpt2_in_small();
    Layout layout;
    layout.pipeline = 4;
    layout.schedule = Schedule::kZeroBubble;
    Plan plan = even_plan(job, layout);
    plan.gpu_of_rank = {4, 0, 5, 2};
    expect_curve_of_one_process({.job = job, .plan = plan, .processes = 6, .steps = 6});
}

TEST(TrainingOverGloo, AKilledRankEndsTheOthersWithAReason) {
    const Job job = gpt2_in_small();
    Layout layout;
    layout.pipeline = layout.data = 2;
    const TrainingCase training{.job = job, .plan = even_plan(job, layout), .steps = 1};
    const std::vector<RankOutcome> outcomes = backend::rank_outcomes(4, [&](LocalRank& rank) {
        const PatternTokens tokens(job.model.vocab);
        const auto device = backend::make_host_device(training.type);
        backend::Trainer trainer(job, training.plan, rank.rank, *device, rank.communicators, tokens);
        trainer.initialise(1);
        for (int step = 0;; ++step) {
            trainer.step(step, 1, nullptr);
            if (step == 2 && rank.rank == 1) std::raise(SIGKILL);
        }
        return std::string();
    });
    for (int rank = 0; rank < 4; ++rank) {
        const RankOutcome& outcome = outcomes[static_cast<std::size_t>(rank)];
        EXPECT_EQ(outcome.signal, rank == 1 ? SIGKILL : 0);
        EXPECT_EQ(outcome.error.empty(), rank == 1);
    }
}

}  // namespace
}  // namespace headway::tests
