#include "scenarios/timing/evaluator.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "scenarios/language/program.h"
#include "tests/paths.h"
#include "tests/property/random_plans.h"
#include "tests/scenarios/timing/reference_iteration.h"

namespace headway::scenarios::timing_test {
namespace {

std::uint64_t seeds(std::uint64_t brief) {
    return tests::long_tests() ? brief * 50 : brief;
}

Plan one_replica(Schedule schedule, int pipeline, int micro_batches, int chunks = 1) {
    Plan plan;
    plan.layout.schedule = schedule;
    plan.layout.pipeline = pipeline;
    plan.layout.virtual_pipeline = chunks;
    plan.micro_batches_of_replica = {micro_batches};
    return plan;
}

/// Equal stages: forward `f`, backward `b` (split in halves for zero-bubble), messages free.
StepTimes equal_stages(const Plan& plan, std::int64_t f, std::int64_t b) {
    const auto cells = static_cast<std::size_t>(plan.layout.data * plan.layout.virtual_stages());
    StepTimes times;
    times.forward.assign(cells, f);
    times.backward.assign(cells, b);
    times.backward_input.assign(cells, b / 2);
    times.backward_weight.assign(cells, b / 2);
    return times;
}

std::int64_t time_of(const Plan& plan, const StepTimes& times, bool tied = false) {
    return Evaluator(plan, tied).iteration_time(times).ns();
}

TEST(Evaluator, Takes1F1BAndGPipeMPlusPMinus1Slots) {
    for (const Schedule schedule : {Schedule::kGPipe, Schedule::kOneForwardOneBackward})
        for (const int p : {1, 2, 3, 4, 8, 16})
            for (const int m : {1, 2, 3, 8, 31}) {
                const Plan plan = one_replica(schedule, p, m);
                EXPECT_EQ(time_of(plan, equal_stages(plan, 10, 20)), (m + p - 1) * 30) << p << " stages, " << m;
            }
}

TEST(Evaluator, TakesInterleavedABubbleSmallerByTheNumberOfChunks) {
    // Narayanan et al. 2021, section 2.2: bubble (p - 1) (F + B) / v, whether messages block or run beside compute.
    for (const bool overlapped : {false, true})
        for (const int p : {2, 4, 8})
            for (const int v : {2, 3, 4})
                for (const int groups : {2, 3, 5}) {
                    Plan plan = one_replica(Schedule::kInterleaved, p, p * groups, v);
                    plan.layout.overlap_pipeline_comm = overlapped;
                    EXPECT_EQ(time_of(plan, equal_stages(plan, 10, 20)), p * groups * v * 30 + (p - 1) * 30);
                }
}

TEST(Evaluator, TakesZeroBubbleH1AThirdOfTheBubbleOf1F1B) {
    // Qi et al. 2023, table 1: (p - 1) (F + B - W) against (p - 1) (F + B + W), here F = B = W = 10.
    for (const int p : {2, 4, 8, 16})
        for (const int m : {2 * p, 3 * p, 4 * p + 1}) {
            Plan plan = one_replica(Schedule::kZeroBubble, p, m);
            plan.layout.overlap_pipeline_comm = true;
            EXPECT_EQ(time_of(plan, equal_stages(plan, 10, 20)), m * 30 + (p - 1) * 10) << p << " stages, " << m;
            const Plan plain = one_replica(Schedule::kOneForwardOneBackward, p, m);
            EXPECT_EQ(time_of(plain, equal_stages(plain, 10, 20)), m * 30 + (p - 1) * 30);
            plan.layout.overlap_pipeline_comm =
                false;  // free messages that are posted in the nominal order cost nothing either
            EXPECT_EQ(time_of(plan, equal_stages(plan, 10, 20)), m * 30 + (p - 1) * 10) << p << " stages, " << m;
        }
}

TEST(Evaluator, PacesAnUnevenPipelineByItsSlowestStage) {
    // Stage 1 of 3 takes twice as long: 10 until it starts, 12 slots of 60 with a gap of 10 before its first backward
    // (the last stage is still busy with it), then the last backward of stage 0.
    Plan plan = one_replica(Schedule::kOneForwardOneBackward, 3, 12);
    StepTimes times = equal_stages(plan, 10, 20);
    times.forward[1] = 20;
    times.backward[1] = 40;
    EXPECT_EQ(time_of(plan, times), 10 + 12 * 60 + 10 + 20);
}

TEST(Evaluator, AddsTheRoundTripOfBlockingMessages) {
    // Two stages, one micro-batch: F, message, F + B, message, B.
    Plan plan = one_replica(Schedule::kOneForwardOneBackward, 2, 1);
    StepTimes times = equal_stages(plan, 10, 20);
    times.send_activation = {3, 0};
    times.send_gradient = {0, 4};
    EXPECT_EQ(time_of(plan, times), 10 + 3 + 10 + 20 + 4 + 20);
    times.delay_activation = {100, 0};
    EXPECT_EQ(time_of(plan, times), 10 + 100 + 3 + 10 + 20 + 4 + 20);
}

TEST(Evaluator, ExchangesOncePerMicroBatchInSteadyState) {
    // Two stages, blocking: stage 1 does F B then one batch (gradient out, next activation in); both messages run at
    // once, so a micro-batch costs F + B + one message once the pipeline is full.
    const auto at = [&](int m) {
        Plan plan = one_replica(Schedule::kOneForwardOneBackward, 2, m);
        StepTimes times = equal_stages(plan, 10, 20);
        times.send_activation = {5, 0};
        times.send_gradient = {0, 5};
        return time_of(plan, times);
    };
    EXPECT_EQ(at(21) - at(20), 35);
    EXPECT_EQ(at(50) - at(20), 30 * 35);
}

TEST(Evaluator, LimitsOverlappedMessagesByMicroBatchesInFlight) {
    // Stage 0 of 1F1B keeps p micro-batches in flight, and each needs p (F + B) and 2 (p - 1) messages to come back.
    for (const int p : {2, 4, 8}) {
        const auto at = [&](int m) {
            Plan plan = one_replica(Schedule::kOneForwardOneBackward, p, m);
            plan.layout.overlap_pipeline_comm = true;
            StepTimes times = equal_stages(plan, 10, 20);
            times.send_activation.assign(times.forward.size(), 5);
            times.send_gradient.assign(times.forward.size(), 5);
            return time_of(plan, times);
        };
        EXPECT_EQ(at(10 * p) - at(5 * p), 5 * (p * 30 + 2 * (p - 1) * 5)) << p;
    }
}

TEST(Evaluator, JoinsReplicasInTheReductionAtTheSlowest) {
    Plan plan = one_replica(Schedule::kOneForwardOneBackward, 2, 4);
    plan.layout.data = 2;
    plan.micro_batches_of_replica = {4, 6};
    StepTimes times = equal_stages(plan, 10, 20);
    times.reduce_gradients = {7, 9};
    times.optimizer = {1, 2, 3, 4};
    // Stage 1 of replica 1 ends at 6 * 30 + 10, stage 0 at 7 * 30; the norm waits for both reductions.
    EXPECT_EQ(time_of(plan, times), std::max(210 + 7, 190 + 9) + 4);
}

TEST(Evaluator, OverlapsTheReductionWithTheLastBackward) {
    Plan plan = one_replica(Schedule::kOneForwardOneBackward, 1, 3);
    plan.layout.data = 2;
    plan.micro_batches_of_replica = {3, 3};
    plan.layout.overlap_grad_reduce = true;
    StepTimes times = equal_stages(plan, 10, 20);
    times.reduce_gradients = {15};
    times.reduce_last_bucket = {5};
    EXPECT_EQ(time_of(plan, times), 90 + 5);  // 10 of 15 hide behind the last backward
    times.reduce_gradients = {45};
    EXPECT_EQ(time_of(plan, times), 70 + 45);  // longer than the backward
    plan.layout.overlap_grad_reduce = false;
    EXPECT_EQ(time_of(plan, times), 90 + 45);
}

TEST(Evaluator, GathersParametersBehindTheFirstForwardOrAfterTheStep) {
    Plan plan = one_replica(Schedule::kOneForwardOneBackward, 1, 3);
    plan.layout.data = 2;
    plan.micro_batches_of_replica = {3, 3};
    plan.layout.distributed_optimizer = true;
    StepTimes times = equal_stages(plan, 10, 20);
    times.gather_parameters = {8};
    times.gather_first_bucket = {2};
    EXPECT_EQ(time_of(plan, times), 90 + 8);
    plan.layout.overlap_param_gather = true;
    EXPECT_EQ(time_of(plan, times), 90 + 2);
    times.gather_parameters = {50};
    EXPECT_EQ(time_of(plan, times), 90 + 40);  // the first forward ends when all has arrived
}

TEST(Evaluator, MovesTheTiedEmbeddingBetweenFirstAndLastStage) {
    Plan plan = one_replica(Schedule::kOneForwardOneBackward, 3, 4);
    StepTimes times = equal_stages(plan, 10, 20);
    times.reduce_tied_embedding = {11, 0, 11};
    EXPECT_EQ(time_of(plan, times, true), 6 * 30 + 11);
    EXPECT_EQ(time_of(plan, times, false), 6 * 30);
}

TEST(Evaluator, AgreesWithWorkersThatWalkTheirPrograms) {
    for (std::uint64_t seed = 1; seed <= seeds(3000); ++seed) {
        const RandomPlan random = random_plan(seed);
        const std::int64_t expected = reference_iteration(random.plan, random.tied_embedding, random.times);
        Evaluator evaluator(random.plan, random.tied_embedding);
        ASSERT_EQ(evaluator.iteration_time(random.times).ns(), expected) << "seed " << seed << ": " << describe(random);
        std::int64_t last = 0;
        for (const TimelineEntry& entry : evaluator.timeline(random.times)) last = std::max(last, entry.end_ns);
        ASSERT_EQ(last, expected) << "timeline, seed " << seed << ": " << describe(random);
    }
}

TEST(Evaluator, SplitsEveryWorkersTimeWithoutRest) {
    for (std::uint64_t seed = 1; seed <= seeds(300); ++seed) {
        const RandomPlan random = random_plan(seed);
        Evaluator evaluator(random.plan, random.tied_embedding);
        const Evaluation evaluation = evaluator.evaluate(random.times);
        EXPECT_EQ(evaluation.iteration, evaluator.iteration_time(random.times));
        std::vector<std::int64_t> compute(evaluation.workers.size(), 0);
        for (const TimelineEntry& entry : evaluator.timeline(random.times))
            if (is_compute(static_cast<Op>(entry.op)) || static_cast<Op>(entry.op) == Op::kOptimizerStep)
                compute[static_cast<std::size_t>(entry.worker)] += entry.end_ns - entry.start_ns;
        for (std::size_t w = 0; w < evaluation.workers.size(); ++w) {
            const WorkerTimes& worker = evaluation.workers[w];
            EXPECT_EQ(worker.compute.ns(), compute[w]) << describe(random);
            EXPECT_GE(worker.data_exposed.ns(), 0);
            EXPECT_GE(worker.idle.ns(), 0) << "seed " << seed << ": " << describe(random);
            EXPECT_EQ(worker.compute + worker.data_exposed + worker.idle, evaluation.iteration);
        }
    }
}

TEST(Evaluator, TimelineHasNoWorkerComputeTwoThingsAtOnce) {
    for (std::uint64_t seed = 1; seed <= seeds(200); ++seed) {
        const RandomPlan random = random_plan(seed);
        std::vector<std::int64_t> busy_until(static_cast<std::size_t>(random.plan.workers()), 0);
        for (const TimelineEntry& entry : Evaluator(random.plan, random.tied_embedding).timeline(random.times)) {
            if (!is_compute(static_cast<Op>(entry.op))) continue;
            std::int64_t& busy = busy_until[static_cast<std::size_t>(entry.worker)];
            EXPECT_GE(entry.start_ns, busy) << describe(random);
            busy = entry.end_ns;
        }
    }
}

TEST(Evaluator, IsEqualWhetherReplicasAreFoldedOrNot) {
    for (std::uint64_t seed = 1; seed <= seeds(1000); ++seed) {
        const RandomPlan random = random_plan(seed);
        Evaluator folded(random.plan, random.tied_embedding), unfolded(random.plan, random.tied_embedding);
        unfolded.fold_equal_replicas(false);
        ASSERT_EQ(folded.iteration_time(random.times), unfolded.iteration_time(random.times)) << describe(random);
        const Evaluation a = folded.evaluate(random.times), b = unfolded.evaluate(random.times);
        for (std::size_t w = 0; w < a.workers.size(); ++w)
            ASSERT_EQ(a.workers[w].data_exposed, b.workers[w].data_exposed);
    }
}

TEST(Evaluator, GivesTheSameAnswerWhateverItEvaluatedBefore) {
    for (std::uint64_t seed = 1; seed <= seeds(200); ++seed) {
        const RandomPlan random = random_plan(seed);
        RandomPlan other = random;
        for (auto* values : {&other.times.forward, &other.times.backward, &other.times.delay_activation})
            for (std::size_t i = 0; i < values->size(); ++i) (*values)[i] += static_cast<std::int64_t>(17 * i);
        Evaluator evaluator(random.plan, random.tied_embedding);
        const Duration first = evaluator.iteration_time(random.times);
        const Duration second = evaluator.iteration_time(other.times);
        EXPECT_EQ(evaluator.iteration_time(random.times), first) << describe(random);
        EXPECT_EQ(Evaluator(other.plan, other.tied_embedding).iteration_time(other.times), second) << describe(random);
    }
}

TEST(Evaluator, RefusesTimesOfAnotherShape) {
    const Plan plan = one_replica(Schedule::kOneForwardOneBackward, 3, 4);
    StepTimes times = equal_stages(plan, 10, 20);
    times.forward.pop_back();
    Evaluator evaluator(plan, false);
    EXPECT_THROW(evaluator.iteration_time(times), std::invalid_argument);
    EXPECT_THROW(evaluator.evaluate(times), std::invalid_argument);
    EXPECT_THROW(evaluator.timeline(times), std::invalid_argument);
    Plan wrong = plan;
    wrong.micro_batches_of_replica = {4, 4};
    EXPECT_THROW(Evaluator(wrong, false), std::invalid_argument);
    EXPECT_THROW(Evaluator(one_replica(Schedule::kInterleaved, 4, 6, 2), false), std::invalid_argument);
}

}  // namespace
}  // namespace headway::scenarios::timing_test
