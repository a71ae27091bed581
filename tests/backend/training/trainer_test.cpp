#include "backend/training/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include "backend/backend_error.h"
#include "backend/host/host_device.h"
#include "backend/training/plan_place.h"
#include "scenarios/costs/parameters.h"
#include "tests/backend/training/thread_ranks.h"
#include "tests/backend/training/training_case.h"

namespace headway::tests {
namespace {

using backend::TimedInstruction;
using scenarios::Instruction;
using scenarios::Job;
using scenarios::Layout;
using scenarios::Op;
using scenarios::Plan;
using scenarios::Program;
using scenarios::Schedule;
using ::testing::HasSubstr;

Layout mixed_layout(Schedule schedule) {
    Layout layout;
    layout.pipeline = layout.data = layout.tensor = 2;
    layout.schedule = schedule;
    if (schedule == Schedule::kInterleaved) layout.virtual_pipeline = 2;
    layout.sequence_parallel = true;
    layout.distributed_optimizer = layout.overlap_grad_reduce = layout.overlap_param_gather = true;
    return layout;
}

Plan two_stages_twice(const Job& job) {
    Layout layout;
    layout.pipeline = layout.data = 2;
    return even_plan(job, layout);
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

TEST(Trainer, ExecutesTheProgramsOfThePlan) {
    const Job job = gpt2_in_small();
    for (const Schedule schedule :
         {Schedule::kGPipe, Schedule::kOneForwardOneBackward, Schedule::kInterleaved, Schedule::kZeroBubble}) {
        Plan plan = even_plan(job, mixed_layout(schedule));
        plan.micro_batches_of_replica = {2, 6};
        const TrainingOutcome outcome = train({.job = job, .plan = plan, .steps = 2});
        for (int rank = 0; rank < plan.layout.world_size(); ++rank) {
            const backend::PlanPlace place = backend::place_in_plan(plan, rank);
            Program executed;
            for (const TimedInstruction& one : outcome.instructions[static_cast<std::size_t>(rank)])
                executed.push_back(one.instruction);
            EXPECT_EQ(executed,
                      scenarios::make_program(plan.layout, true, place.stage,
                                              plan.micro_batches_of_replica[static_cast<std::size_t>(place.replica)]));
        }
    }
}

TEST(Trainer, TimesEveryInstruction) {
    const Job job = gpt2_in_small();
    const Plan plan = even_plan(job, mixed_layout(Schedule::kOneForwardOneBackward));
    const TrainingOutcome outcome = train({.job = job, .plan = plan, .steps = 2});
    for (const std::vector<TimedInstruction>& instructions : outcome.instructions) {
        scenarios::Duration last;
        for (std::size_t i = 0; i < instructions.size(); ++i) {
            const TimedInstruction& one = instructions[i];
            if (!one.instruction.batched) {
                EXPECT_GE(one.begin, last);
            }
            EXPECT_GE(one.end, one.begin);
            EXPECT_GE(one.exposed, scenarios::Duration());
            EXPECT_LE(one.exposed, one.end - one.begin);
            if (is_compute(one.instruction.op)) {
                EXPECT_GT(one.end, one.begin);
            }
            last = one.end;
            // Activations of a micro-batch, cut over the tensor ranks by sequence parallelism.
            if (is_message(one.instruction.op)) {
                EXPECT_EQ(one.bytes, 8 * 16 / 2 * 8);
            }
        }
    }
}

TEST(Trainer, CountsWhatARingMovesForGradientsAndParameters) {
    const Job job = llama_in_small();
    Layout layout;
    layout.data = 4;
    const std::int64_t parameters = scenarios::model_parameters(job.model) * 8;
    const auto bytes = [&](const Layout& of, Op op) {
        const TrainingOutcome outcome = train({.job = job, .plan = even_plan(job, of), .steps = 1});
        std::int64_t sum = 0;
        for (const TimedInstruction& one : outcome.instructions[0])
            if (one.instruction.op == op) sum += one.bytes;
        return sum;
    };
    EXPECT_EQ(bytes(layout, Op::kReduceGradients), parameters * 3 / 2);
    layout.distributed_optimizer = true;
    EXPECT_EQ(bytes(layout, Op::kReduceGradients), parameters * 3 / 4);
    EXPECT_EQ(bytes(layout, Op::kGatherParameters), parameters * 3 / 4);
}

TEST(Trainer, GivesTheSameBitsTwice) {
    const Job job = gpt2_in_small();
    Plan plan = even_plan(job, mixed_layout(Schedule::kInterleaved));
    plan.layers_of_cell = {1, 1, 1, 1, 0, 1, 2, 1};
    plan.micro_batches_of_replica = {2, 6};
    const TrainingCase training{.job = job, .plan = plan, .steps = 6, .type = backend::DataType::kFloat32};
    const TrainingOutcome first = train(training), second = train(training);
    EXPECT_TRUE(same_bits(first.losses, second.losses));
    EXPECT_TRUE(same_bits(first.gradient_norms, second.gradient_norms));
    for (const auto& [key, state] : first.state) {
        EXPECT_TRUE(same_bits(state.master, second.state.at(key).master));
        EXPECT_TRUE(same_bits(state.second_moment, second.state.at(key).second_moment));
    }
}

TEST(Trainer, TrainsDifferentlyFromAnotherSeed) {
    const Job job = gpt2_in_small();
    const Plan plan = even_plan(job, Layout());
    const TrainingOutcome first = train({.job = job, .plan = plan, .steps = 2, .seed = 1});
    const TrainingOutcome second = train({.job = job, .plan = plan, .steps = 2, .seed = 2});
    EXPECT_GT(largest_difference(first.losses, second.losses), 1e-4);
}

TEST(Trainer, ContinuesUnderAnotherPlan) {
    const Job job = gpt2_in_small();
    const TrainingOutcome whole = train({.job = job, .plan = even_plan(job, Layout()), .steps = 8});
    const TrainingOutcome begun = train({.job = job, .plan = two_stages_twice(job), .steps = 4});
    for (const bool overlapped : {true, false}) {
        Layout layout = mixed_layout(Schedule::kInterleaved);
        layout.overlap_param_gather = overlapped;
        const TrainingOutcome rest =
            train({.job = job, .plan = even_plan(job, layout), .first_step = 4, .steps = 4, .from = &begun.state});
        std::vector<double> losses = begun.losses;
        losses.insert(losses.end(), rest.losses.begin(), rest.losses.end());
        EXPECT_LE(largest_difference(losses, whole.losses), 1e-12);
        EXPECT_LE(largest_difference(rest.state, whole.state), 1e-10);
    }
}

TEST(Trainer, TrainsEverySampleOfAStepOnceWhateverTheShares) {
    // Without an update the loss of a step says which samples it saw.
    Job job = gpt2_in_small();
    job.training->learning_rate = job.training->final_learning_rate = 0.0;
    Layout layout;
    layout.data = 3;
    Plan plan = even_plan(job, layout);
    plan.micro_batches_of_replica = {1, 6, 1};
    const TrainingOutcome one = train({.job = job, .plan = even_plan(job, Layout()), .steps = 3});
    const TrainingOutcome many = train({.job = job, .plan = plan, .steps = 3});
    EXPECT_LE(largest_difference(one.losses, many.losses), 1e-13);
    EXPECT_NE(one.losses[0], one.losses[1]);
    EXPECT_NE(one.losses[1], one.losses[2]);
}

/// Lets each compute take two milliseconds.
class SlowPace final : public backend::Pace {
  public:
    void finish(const Instruction& instruction, scenarios::Duration spent) override {
        computed.push_back(instruction);
        if (spent < scenarios::Duration()) negative = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    Program computed;
    bool negative = false;
};

TEST(Trainer, IsPacedAtEachComputeInstructionAndTheUpdate) {
    const Job job = gpt2_in_small();
    const Plan plan = even_plan(job, mixed_layout(Schedule::kZeroBubble));
    SlowPace pace;
    const TrainingOutcome outcome = train({.job = job, .plan = plan, .steps = 1, .pace = &pace});
    Program expected = scenarios::compute_order(plan.layout, 0, plan.micro_batches_of_replica[0]);
    expected.push_back({Op::kOptimizerStep, 0, false, 0});
    EXPECT_EQ(pace.computed, expected);
    EXPECT_FALSE(pace.negative);
    for (const TimedInstruction& one : outcome.instructions[0])
        if (is_compute(one.instruction.op)) {
            EXPECT_GE(one.end - one.begin - one.exposed, scenarios::Duration::milliseconds(2));
        }
}

TEST(Trainer, SaysThatItsMemoryIsTaken) {
    const Job job = gpt2_in_small();
    const PatternTokens tokens(job.model.vocab);
    run_thread_ranks(1, std::chrono::seconds(1), [&](int process, backend::CommunicatorMaker& communicators) {
        const auto device = backend::make_host_device(backend::DataType::kFloat32);
        const backend::Trainer trainer(job, even_plan(job, Layout()), process, *device, communicators, tokens);
        // Weights, gradients, master weights and two moments.
        EXPECT_GE(trainer.memory().count(), 20 * scenarios::model_parameters(job.model));
    });
}

TEST(Trainer, RefusesContextParallelism) {
    const Job job = gpt2_in_small();
    Layout layout;
    layout.context = 2;
    try {
        train({.job = job, .plan = even_plan(job, layout), .steps = 1});
        FAIL() << "accepted";
    } catch (const std::invalid_argument& error) {
        EXPECT_THAT(error.what(), HasSubstr("context parallelism"));
    }
}

TEST(Trainer, SaysThatTrainingDivergedAndKeepsTheState) {
    const Job job = gpt2_in_small();
    const Plan plan = two_stages_twice(job);
    const PatternTokens tokens(job.model.vocab);
    std::atomic<int> said = 0;
    run_thread_ranks(4, std::chrono::seconds(10), [&](int process, backend::CommunicatorMaker& communicators) {
        const auto device = backend::make_host_device(backend::DataType::kFloat64);
        backend::Trainer trainer(job, plan, process, *device, communicators, tokens);
        trainer.initialise(1);
        const backend::StateSlice& slice = trainer.state().front();
        std::vector<double> spoilt(static_cast<std::size_t>(slice.elements.size()), 1e308), kept = spoilt;
        device->from_host(spoilt.data(), slice.master);
        trainer.state_changed();
        try {
            trainer.step(0, 1, nullptr);
        } catch (const backend::BackendError& error) {
            EXPECT_THAT(error.what(), HasSubstr("training diverged"));
            ++said;
        }
        device->to_host(slice.master, kept.data());
        EXPECT_TRUE(same_bits(kept, spoilt));
    });
    EXPECT_EQ(said, 4);
}

/// The next iteration runs the new shares, and nothing but the order of sums changes in what is learned.
TEST(Trainer, SharesMicroBatchesAnewBetweenSteps) {
    const Job job = gpt2_in_small();
    const Plan even = two_stages_twice(job);
    Plan uneven = even;
    uneven.micro_batches_of_replica[0] -= 1;
    uneven.micro_batches_of_replica[1] += 1;
    const PatternTokens tokens(job.model.vocab);
    std::vector<double> undisturbed, changed;
    for (const bool share : {false, true})
        run_thread_ranks(4, std::chrono::seconds(60), [&](int process, backend::CommunicatorMaker& communicators) {
            const auto device = backend::make_host_device(backend::DataType::kFloat64);
            backend::Trainer trainer(job, even, process, *device, communicators, tokens);
            trainer.initialise(1);
            for (int step = 0; step < 6; ++step) {
                if (share && step == 3) trainer.share(uneven);
                const backend::StepResult result = trainer.step(step, 1, nullptr);
                if (process == 0) (share ? changed : undisturbed).push_back(result.loss);
                int forwards = 0;
                for (const TimedInstruction& timed : result.instructions)
                    forwards += timed.instruction.op == Op::kForward ? 1 : 0;
                const int replica = backend::place_in_plan(even, process).replica;
                const Plan& plan = share && step >= 3 ? uneven : even;
                EXPECT_EQ(forwards, plan.micro_batches_of_replica[static_cast<std::size_t>(replica)]);
            }
            Plan other = even;
            std::swap(other.gpu_of_rank[0], other.gpu_of_rank[1]);
            EXPECT_THROW(trainer.share(other), std::invalid_argument);
        });
    EXPECT_LT(largest_difference(undisturbed, changed), 1e-12);
}

TEST(Trainer, EndsEveryRankWhenOneFails) {
    const Job job = gpt2_in_small();
    const Plan plan = two_stages_twice(job);
    const PatternTokens tokens(job.model.vocab);
    std::vector<int> failed(4, 0);
    EXPECT_THROW(run_thread_ranks(4, std::chrono::seconds(60),
                                  [&](int process, backend::CommunicatorMaker& communicators) {
                                      const auto device = backend::make_host_device(backend::DataType::kFloat32);
                                      backend::Trainer trainer(job, plan, process, *device, communicators, tokens);
                                      trainer.initialise(1);
                                      trainer.step(0, 1, nullptr);
                                      if (process == 2) throw std::runtime_error("this rank is lost");
                                      try {
                                          for (int step = 1; step < 4; ++step) trainer.step(step, 1, nullptr);
                                      } catch (const backend::BackendError& error) {
                                          EXPECT_THAT(error.what(), HasSubstr("this rank is lost"));
                                          failed[static_cast<std::size_t>(process)] = 1;
                                      }
                                  }),
                 std::runtime_error);
    EXPECT_EQ(failed, (std::vector<int>{1, 1, 0, 1}));
}

TEST(Trainer, EndsInAnErrorWhereARankStaysAway) {
    const Job job = gpt2_in_small();
    const Plan plan = two_stages_twice(job);
    const PatternTokens tokens(job.model.vocab);
    EXPECT_THROW(run_thread_ranks(4, std::chrono::milliseconds(300),
                                  [&](int process, backend::CommunicatorMaker& communicators) {
                                      const auto device = backend::make_host_device(backend::DataType::kFloat32);
                                      backend::Trainer trainer(job, plan, process, *device, communicators, tokens);
                                      trainer.initialise(1);
                                      if (process != 3) trainer.step(0, 1, nullptr);
                                  }),
                 backend::BackendError);
}

}  // namespace
}  // namespace headway::tests
