#include "backend/training/plan_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>

#include "tests/backend/training/training_case.h"

namespace headway::tests {
namespace {

using scenarios::Job;
using scenarios::Layout;
using scenarios::Plan;
using ::testing::HasSubstr;

Layout two_of_each() {
    Layout layout;
    layout.tensor = layout.pipeline = layout.data = 2;
    return layout;
}

TEST(PlanPlace, FollowsTheRankOfTheProcess) {
    Plan plan = even_plan(gpt2_in_small(), two_of_each());
    std::swap(plan.gpu_of_rank[5], plan.gpu_of_rank[0]);
    plan.gpu_of_rank[7] = 12;
    const backend::PlanPlace place = backend::place_in_plan(plan, 0);  // rank 5: tensor 1, replica 0, stage 1
    EXPECT_EQ(place.rank, 5);
    EXPECT_EQ(place.tensor, 1);
    EXPECT_EQ(place.replica, 0);
    EXPECT_EQ(place.stage, 1);
    EXPECT_EQ(backend::place_in_plan(plan, 12).rank, 7);
    EXPECT_TRUE(backend::place_in_plan(plan, 7).idle());
}

std::string refusal(const std::function<void(Job&, Plan&)>& spoil) {
    Job job = gpt2_in_small();
    Plan plan = even_plan(job, two_of_each());
    spoil(job, plan);
    try {
        backend::check_trainable(job, plan);
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "accepted";
}

TEST(PlanPlace, AcceptsAnEvenPlan) {
    EXPECT_EQ(refusal([](Job&, Plan&) {}), "accepted");
}

TEST(PlanPlace, RefusesContextParallelism) {
    EXPECT_THAT(refusal([](Job& job, Plan& plan) {
                    plan.layout.context = 2;
                    plan = even_plan(job, plan.layout);
                }),
                HasSubstr("context parallelism runs in simulation only"));
}

TEST(PlanPlace, RefusesPlansThatDoNotFitTheJob) {
    EXPECT_THAT(refusal([](Job&, Plan& plan) { plan.gpu_of_rank[3] = 0; }), HasSubstr("no GPU of their own (0)"));
    EXPECT_THAT(refusal([](Job&, Plan& plan) { plan.gpu_of_rank[3] = -1; }), HasSubstr("no GPU of their own (-1)"));
    EXPECT_THAT(refusal([](Job&, Plan& plan) { plan.gpu_of_rank.pop_back(); }), HasSubstr("places 7 ranks"));
    EXPECT_THAT(refusal([](Job&, Plan& plan) {
                    plan.micro_batches_of_replica = {8, 0};
                }),
                HasSubstr("without a micro-batch"));
    EXPECT_THAT(refusal([](Job&, Plan& plan) { plan.micro_batches_of_replica = {8}; }),
                HasSubstr("micro-batches to 1 replicas"));
    EXPECT_THAT(refusal([](Job& job, Plan&) { job.global_batch = 9; }), HasSubstr("global batch of 9"));
    EXPECT_THAT(refusal([](Job&, Plan& plan) { plan.layers_of_cell[2] = 1; }), HasSubstr("replica 1 has 3 layers"));
    EXPECT_THAT(refusal([](Job&, Plan& plan) { plan.layers_of_cell = {-1, 5, 2, 2}; }), HasSubstr("fewer than 0"));
    EXPECT_THAT(refusal([](Job&, Plan& plan) { plan.layers_of_cell.pop_back(); }), HasSubstr("gives layers to 3"));
    EXPECT_THAT(refusal([](Job&, Plan& plan) { plan.layout.pipeline = 0; }), HasSubstr("degree below 1"));
}

}  // namespace
}  // namespace headway::tests
