#include "policies/planning/plan_predictor.h"

#include <gtest/gtest.h>

#include "scenarios/language/strategy.h"
#include "tests/scenarios/costs/shipped_job.h"

namespace headway::policies {
namespace {

TEST(PlanPredictor, DoesNotCountDelaysOfHopsThatAPlanDoesNotHave) {
    const scenarios::Job job = scenarios::job_of(scenarios::gpt(8, 1024, 16, 1024), 1, 64);
    const scenarios::Cluster cluster = scenarios::dgx_a100(1);
    scenarios::Strategy strategy;
    strategy.layout.pipeline = 2;
    strategy.layout.data = 4;
    const scenarios::Plan two_stages = scenarios::initial_plan(strategy, job, cluster);
    strategy.layout.pipeline = 4;
    strategy.layout.data = 2;
    const scenarios::Plan four_stages = scenarios::initial_plan(strategy, job, cluster);

    scenarios::Conditions late;
    late.hop_delay = {scenarios::Duration::milliseconds(20)};
    PlanPredictor predictor(job, cluster);
    EXPECT_GT(predictor.iteration(two_stages, late), predictor.iteration(two_stages));
    EXPECT_EQ(predictor.iteration(four_stages, late), predictor.iteration(four_stages));
}

}  // namespace
}  // namespace headway::policies
