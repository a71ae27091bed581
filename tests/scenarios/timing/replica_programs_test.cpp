#include "scenarios/timing/replica_programs.h"

#include <cmath>
#include <memory>
#include <random>

#include <gtest/gtest.h>

#include "scenarios/timing/evaluator.h"

namespace headway::scenarios::timing_test {
namespace {

Plan pipelines(Schedule schedule, int stages, int chunks, std::vector<int> micro_batches) {
    Plan plan;
    plan.layout.schedule = schedule;
    plan.layout.pipeline = stages;
    plan.layout.virtual_pipeline = chunks;
    plan.layout.data = static_cast<int>(micro_batches.size());
    plan.micro_batches_of_replica = std::move(micro_batches);
    return plan;
}

StepTimes uneven_stages(const Plan& plan, std::uint64_t seed, double spread) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> factor(1.0, 1.0 + spread);
    StepTimes times;
    for (int cell = 0; cell < plan.layout.data * plan.layout.virtual_stages(); ++cell) {
        const double slow = factor(random);
        times.forward.push_back(static_cast<std::int64_t>(1e7 * slow));
        times.backward.push_back(static_cast<std::int64_t>(2e7 * slow));
        times.backward_input.push_back(static_cast<std::int64_t>(1e7 * slow));
        times.backward_weight.push_back(static_cast<std::int64_t>(1e7 * slow));
        times.send_activation.push_back(300'000);
        times.send_gradient.push_back(300'000);
    }
    return times;
}

TEST(ReplicaPrograms, InterpolateWithinAThousandth) {
    struct Case {
        Schedule schedule;
        int stages, chunks;
        std::vector<int> micro_batches;
    };
    for (const Case& c : {Case{Schedule::kOneForwardOneBackward, 4, 1, {33, 61, 47, 255}},
                          Case{Schedule::kOneForwardOneBackward, 16, 1, {33, 101, 187, 191}},
                          Case{Schedule::kZeroBubble, 8, 1, {35, 77, 131}}, Case{Schedule::kGPipe, 8, 1, {35, 77, 131}},
                          Case{Schedule::kInterleaved, 4, 3, {132, 140, 260}}}) {
        for (std::uint64_t seed = 1; seed <= 20; ++seed) {
            const Plan plan = pipelines(c.schedule, c.stages, c.chunks, c.micro_batches);
            const StepTimes times = uneven_stages(plan, seed, seed % 2 == 0 ? 0.02 : 1.5);
            Evaluator exact(plan, true);
            Evaluator coarse(plan, true,
                             std::make_shared<ReplicaPrograms>(plan.layout, ReplicaPrograms::Counts::kGrid));
            const double wanted = exact.iteration_time(times).s();
            EXPECT_NEAR(coarse.iteration_time(times).s(), wanted, wanted * 1e-3)
                << c.stages << " stages, seed " << seed;
        }
    }
}

TEST(ReplicaPrograms, AreExactOnTheGridAndForFewMicroBatches) {
    for (const std::vector<int>& micro_batches : {std::vector<int>{1, 7, 31}, std::vector<int>{32, 64, 192}}) {
        const Plan plan = pipelines(Schedule::kOneForwardOneBackward, 4, 1, micro_batches);
        const StepTimes times = uneven_stages(plan, 5, 0.7);
        Evaluator coarse(plan, false, std::make_shared<ReplicaPrograms>(plan.layout, ReplicaPrograms::Counts::kGrid));
        EXPECT_EQ(coarse.iteration_time(times), Evaluator(plan, false).iteration_time(times));
    }
}

TEST(ReplicaPrograms, RefuseWhatCannotBeScheduledAndOtherLayouts) {
    const Plan odd = pipelines(Schedule::kInterleaved, 4, 2, {262});
    const auto programs = std::make_shared<ReplicaPrograms>(odd.layout, ReplicaPrograms::Counts::kGrid);
    EXPECT_THROW(Evaluator(odd, true, programs), std::invalid_argument);
    const Plan other = pipelines(Schedule::kInterleaved, 4, 3, {32});
    EXPECT_THROW(Evaluator(other, true, programs), std::invalid_argument);
}

}  // namespace
}  // namespace headway::scenarios::timing_test
