#include "policies/planning/corrections.h"

#include <gtest/gtest.h>

namespace headway::policies {
namespace {

scenarios::Plan plan_of(int data) {
    scenarios::Plan plan;
    plan.layout.data = data;
    for (int gpu = 0; gpu < data; ++gpu) plan.gpu_of_rank.push_back(gpu);
    plan.micro_batches_of_replica.assign(static_cast<std::size_t>(data), 1);
    return plan;
}

TEST(Corrections, RememberWhatALayoutTakesLongerThanPredicted) {
    Corrections corrections;
    corrections.start_episode(1.0);
    const scenarios::Plan first = plan_of(4), contended = plan_of(8);
    corrections.observe(first, 1.0, true);
    corrections.observe(contended, 1.06, true);
    EXPECT_NEAR(corrections.of(contended), 1.06, 1e-9);
    EXPECT_NEAR(corrections.of(first), 1.0, 1e-9) << "the way back is predicted as it was";
    EXPECT_NEAR(corrections.of(plan_of(16)), 1.0, 1e-9);
    scenarios::Plan shared = contended;
    shared.micro_batches_of_replica[0] = 2;
    EXPECT_NEAR(corrections.of(shared), 1.06, 1e-9) << "of the same layout on the same GPUs";
}

TEST(Corrections, TakeWhatChangesLaterForASlowdownOfAllPlans) {
    Corrections corrections;
    corrections.start_episode(1.1);
    const scenarios::Plan first = plan_of(4), other = plan_of(8);
    corrections.observe(first, 1.1, true);
    corrections.observe(other, 1.1, true);
    corrections.observe(other, 1.65, true);
    EXPECT_NEAR(corrections.of(other), 1.65, 1e-9);
    EXPECT_NEAR(corrections.of(first), 1.65, 1e-9);
}

TEST(Corrections, DoNotSayThatAllPlansAreFasterThanUsual) {
    Corrections corrections;
    corrections.start_episode(1.0);
    corrections.observe(plan_of(4), 1.0, true);
    corrections.observe(plan_of(4), 0.5, false);
    EXPECT_NEAR(corrections.of(plan_of(4)), 0.985, 1e-9);
}

TEST(Corrections, LearnNothingFromReadingsThatCameLate) {
    Corrections corrections;
    corrections.start_episode(1.0);
    corrections.observe(plan_of(4), 1.0, true);
    for (int i = 0; i < 5; ++i) corrections.observe(plan_of(4), 1.5, false);
    corrections.observe(plan_of(4), 1.0, true);
    EXPECT_NEAR(corrections.of(plan_of(8)), 1.0, 1e-9);
}

}  // namespace
}  // namespace headway::policies
