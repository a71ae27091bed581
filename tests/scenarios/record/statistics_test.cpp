#include "scenarios/record/statistics.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace headway::scenarios {
namespace {

TEST(StudentT, MatchesThePublishedTable) {  // NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2
    EXPECT_NEAR(student_t_975(1), 12.706, 5e-4);
    EXPECT_NEAR(student_t_975(2), 4.303, 5e-4);
    EXPECT_NEAR(student_t_975(3), 3.182, 5e-4);
    EXPECT_NEAR(student_t_975(4), 2.776, 5e-4);
    EXPECT_NEAR(student_t_975(9), 2.262, 5e-4);
    EXPECT_NEAR(student_t_975(10), 2.228, 5e-4);
    EXPECT_NEAR(student_t_975(30), 2.042, 5e-4);
    EXPECT_NEAR(student_t_975(99), 1.984, 5e-4);
    EXPECT_NEAR(student_t_975(100000), 1.960, 5e-4);
    EXPECT_THROW(student_t_975(0), std::invalid_argument);
}

TEST(EstimateMean, GivesTheIntervalOfTheMean) {
    const Estimate estimate = estimate_mean({1, 2, 3, 4, 5});
    EXPECT_DOUBLE_EQ(estimate.mean, 3.0);
    ASSERT_TRUE(estimate.half_width);
    EXPECT_NEAR(*estimate.half_width, 2.776445 * 1.5811388 / 2.2360680, 1e-5);  // t s / sqrt(n)
}

TEST(EstimateMean, KnowsNoIntervalOfOneValue) {
    EXPECT_FALSE(estimate_mean({4}).half_width);
    EXPECT_DOUBLE_EQ(estimate_mean({4}).mean, 4.0);
    EXPECT_THROW(estimate_mean({}), std::invalid_argument);
}

TEST(EstimateMean, HasNoWidthWhenAllAgree) {
    EXPECT_DOUBLE_EQ(*estimate_mean({2, 2, 2}).half_width, 0.0);
}

}  // namespace
}  // namespace headway::scenarios
