#include "policies/planning/iteration_bound.h"

#include <gtest/gtest.h>

#include "scenarios/timing/evaluator.h"
#include "tests/property/random_plans.h"

namespace headway::tests {
namespace {

using scenarios::Duration;
using scenarios::timing_test::RandomPlan;

TEST(IterationBound, IsNeverAboveTheEvaluationOfRandomPlans) {
    double tightest = 0.0, sum = 0.0;
    int count = 0;
    for (std::uint64_t seed = 0; seed < 4000; ++seed) {
        RandomPlan random = scenarios::timing_test::random_plan(seed);
        random.times.micro_batch_factor.clear();  // the bound does not look at single micro-batches
        const Duration exact = scenarios::Evaluator(random.plan, random.tied_embedding).iteration_time(random.times);
        const Duration bound = policies::iteration_lower_bound(random.plan.layout, random.tied_embedding,
                                                               random.plan.micro_batches_of_replica, random.times);
        ASSERT_LE(bound, exact) << "seed " << seed << ": " << scenarios::timing_test::describe(random);
        if (exact == Duration()) continue;
        tightest = std::max(tightest, bound / exact);
        sum += bound / exact;
        ++count;
    }
    EXPECT_EQ(tightest, 1.0);
    EXPECT_GT(sum / count, 0.7);
}

}  // namespace
}  // namespace headway::tests
