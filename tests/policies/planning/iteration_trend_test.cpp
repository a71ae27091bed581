#include "policies/planning/iteration_trend.h"

#include <gtest/gtest.h>

#include <random>
#include <stdexcept>
#include <vector>

namespace headway::policies {
namespace {

using scenarios::Duration;

std::vector<Duration> seconds(const std::vector<double>& values) {
    std::vector<Duration> series;
    for (const double value : values) series.push_back(Duration::seconds(value));
    return series;
}

TEST(IterationTrend, OfAQuietIntervalIsItsMean) {
    TrendFinder finder;
    const IterationTrend trend = finder.take(seconds({2, 2, 2, 2}));
    EXPECT_EQ(trend.mean, Duration::seconds(2));
    EXPECT_EQ(trend.now, Duration::seconds(2));
    EXPECT_EQ(trend.share, 1.0);
    EXPECT_THROW(finder.take({}), std::invalid_argument);
}

TEST(IterationTrend, TellsTheLevelAtTheEndAndItsShareOfTheInterval) {
    TrendFinder finder;
    finder.take(seconds({2, 2, 2, 2, 2}));
    const IterationTrend slower = finder.take(seconds({2, 2, 2, 3, 3}));
    EXPECT_NEAR(slower.now.s(), 3.0, 1e-6);
    EXPECT_NEAR(slower.share, 0.4, 1e-9);
    const IterationTrend still = finder.take(seconds({3, 3, 3, 3, 3}));
    EXPECT_EQ(still.share, 1.0);
    const IterationTrend well = finder.take(seconds({3, 2, 2, 2, 2}));
    EXPECT_NEAR(well.now.s(), 2.0, 1e-6);
    EXPECT_NEAR(well.share, 0.8, 1e-9);
}

TEST(IterationTrend, CountsTheIterationInWhichItHappensAsFarAsItIsSlower) {
    TrendFinder finder;
    finder.take(seconds({2, 2, 2, 2}));
    const IterationTrend within = finder.take(seconds({2, 2.25, 3, 3}));
    EXPECT_NEAR(within.now.s(), 3.0, 1e-6);
    EXPECT_NEAR(within.share, 2.25 / 4, 1e-9);
    // The mean is that of the two levels, by their shares.
    EXPECT_NEAR(within.mean.s(), 2.0 * (1 - within.share) + 3.0 * within.share, 1e-6);
    const IterationTrend first = finder.take(seconds({3.5, 4, 4, 4}));
    EXPECT_NEAR(first.now.s(), 4.0, 1e-6) << "it began within the first iteration";
    EXPECT_NEAR(first.share, 3.5 / 4, 1e-9);
}

TEST(IterationTrend, OfTheFirstIntervalUnderAPlanNeedsBothLevelsInIt) {
    TrendFinder finder;
    finder.take(seconds({2, 2, 2, 2}));
    finder.plan_changed();
    EXPECT_EQ(finder.take(seconds({5, 5, 5, 5})).share, 1.0) << "another plan takes longer: that is no change";
    finder.plan_changed();
    EXPECT_NEAR(finder.take(seconds({5, 5, 6, 6})).share, 0.5, 1e-9);
}

/// Jitter of a fifth: of a hundred intervals hardly one looks like a change.
TEST(IterationTrend, DoesNotTakeScatterForAChange) {
    std::mt19937_64 random(7);
    std::normal_distribution<double> scatter(0.0, 0.2);
    TrendFinder finder;
    int changes = 0;
    for (int interval = 0; interval < 200; ++interval) {
        std::vector<double> values;
        for (int i = 0; i < 10; ++i) values.push_back(2.0 * std::max(0.1, 1.0 + scatter(random)));
        if (finder.take(seconds(values)).share < 1.0) ++changes;
    }
    EXPECT_LE(changes, 4);
}

}  // namespace
}  // namespace headway::policies
