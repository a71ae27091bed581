#include "scenarios/validation/statistics.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace headway::scenarios {
namespace {

TEST(KendallTauB, IsOneForEqualAndMinusOneForReversedOrder) {
    EXPECT_DOUBLE_EQ(*kendall_tau_b({1, 2, 3, 4}, {10, 20, 30, 40}), 1.0);
    EXPECT_DOUBLE_EQ(*kendall_tau_b({1, 2, 3, 4}, {4, 3, 2, 1}), -1.0);
}

TEST(KendallTauB, CorrectsForTies) {
    // Pairs: (1,2) tied in a; (1,3) and (2,3) concordant. C - D = 2, untied 2 in a and 3 in b: 2 / sqrt(6).
    EXPECT_NEAR(*kendall_tau_b({1, 1, 2}, {1, 2, 3}), 0.8164965809277260, 1e-15);
    // 8 concordant and 2 discordant of 10 pairs.
    EXPECT_NEAR(*kendall_tau_b({1, 2, 3, 4, 5}, {2, 1, 3, 5, 4}), 0.6, 1e-15);
}

TEST(KendallTauB, IsAbsentWhereNothingIsRanked) {
    EXPECT_FALSE(kendall_tau_b({}, {}).has_value());
    EXPECT_FALSE(kendall_tau_b({1}, {1}).has_value());
    EXPECT_FALSE(kendall_tau_b({1, 2}, {5, 5}).has_value());
}

TEST(KendallTauB, RejectsSeriesOfDifferentLengths) {
    EXPECT_THROW(kendall_tau_b({1, 2}, {1}), std::invalid_argument);
}

TEST(ErrorFigures, AreFractionsOfTheMeasuredValue) {
    const ErrorFigures figures = error_figures({{"m", 10.0, 11.0}, {"m", 100.0, 80.0}});
    EXPECT_EQ(figures.rows, 2);
    EXPECT_NEAR(*figures.mape, 0.15, 1e-15);
    EXPECT_NEAR(*figures.bias, -0.05, 1e-15);
    EXPECT_NEAR(*figures.worst, 0.2, 1e-15);
    EXPECT_DOUBLE_EQ(*figures.kendall_tau, 1.0);
}

TEST(ErrorFigures, RankOnlyRowsOfOneModelAgainstEachOther) {
    // In each model the order is kept; across the two models it is not.
    const ErrorFigures figures =
        error_figures({{"small", 1.0, 7.0}, {"small", 2.0, 8.0}, {"large", 3.0, 1.0}, {"large", 4.0, 2.0}});
    EXPECT_DOUBLE_EQ(*figures.kendall_tau, 1.0);
}

TEST(ErrorFigures, AreAbsentForNoRows) {
    const ErrorFigures figures = error_figures({});
    EXPECT_EQ(figures.rows, 0);
    EXPECT_FALSE(figures.mape || figures.worst || figures.bias || figures.kendall_tau);
}

}  // namespace
}  // namespace headway::scenarios
