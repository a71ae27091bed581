#include "policies/evaluation.h"

#include <gtest/gtest.h>

#include <vector>

namespace headway::policies {
namespace {

const std::vector<double> kStatic = {0.5, 0.8, 0.99, 1.0};
const std::vector<double> kOracle = {0.9, 1.0, 0.992, 1.0};

TEST(RecoveredShare, CountsOnlyScenariosWithSomethingToRecover) {
    const std::vector<double> policy = {0.7, 0.9, 0.2, 0.9};  // the last two do not count
    EXPECT_DOUBLE_EQ(*recovered_share(policy, kStatic, kOracle), 0.3 / 0.6);
    EXPECT_DOUBLE_EQ(*recovered_share(kStatic, kStatic, kOracle), 0.0);
    EXPECT_DOUBLE_EQ(*recovered_share(kOracle, kStatic, kOracle), 1.0);
}

TEST(RecoveredShare, IsNegativeWhereAPolicyMakesThingsWorse) {
    EXPECT_LT(*recovered_share(std::vector{0.4, 0.7, 1.0, 1.0}, kStatic, kOracle), 0.0);
}

TEST(RecoveredShare, IsAbsentWhereNothingCanBeRecovered) {
    EXPECT_FALSE(recovered_share(kStatic, kStatic, kStatic).has_value());
    EXPECT_FALSE(recovered_share({}, {}, {}).has_value());
}

TEST(RecoveredShare, RefusesPoliciesOverDifferentScenarios) {
    EXPECT_THROW(recovered_share(std::vector{0.5}, kStatic, kOracle), std::invalid_argument);
    EXPECT_THROW(lost_fraction(std::vector{0.5}, kStatic), std::invalid_argument);
}

TEST(LostFraction, CountsScenariosMoreThanAHundredthBelowStatic) {
    EXPECT_DOUBLE_EQ(lost_fraction(std::vector{0.494, 0.8, 0.99, 0.995}, kStatic), 0.25);
    EXPECT_DOUBLE_EQ(lost_fraction(std::vector{0.496, 0.8, 0.99, 0.995}, kStatic), 0.0);
    EXPECT_DOUBLE_EQ(lost_fraction(kStatic, kStatic), 0.0);
}

std::optional<double> mean_of_drawn(const std::vector<double>& values, std::span<const std::size_t> drawn) {
    return mean_goodput(drawn_goodputs(values, drawn));
}

TEST(Bootstrap, CoversTheMeanWithTheWidthOfTheNormalApproximation) {
    scenarios::RandomStream stream(7, "test");
    std::vector<double> values;
    for (int i = 0; i < 400; ++i) values.push_back(stream.normal());
    const auto interval = bootstrap_interval(
        values.size(), [&](auto drawn) { return mean_of_drawn(values, drawn); }, scenarios::RandomStream(1, "test"));
    ASSERT_TRUE(interval.has_value());
    const double mean = mean_goodput(values);
    EXPECT_LT(interval->low, mean);
    EXPECT_GT(interval->high, mean);
    EXPECT_NEAR(interval->high - interval->low, 2 * 1.96 / 20.0, 0.03);
}

TEST(Bootstrap, IsPairedAndDeterministic) {
    // Goodputs differ widely between scenarios, their difference hardly: a paired interval is narrow.
    std::vector<double> a, b;
    scenarios::RandomStream stream(3, "test");
    for (int i = 0; i < 100; ++i) {
        b.push_back(stream.uniform());
        a.push_back(b.back() + 0.02 + 0.01 * stream.uniform());
    }
    const auto difference = [&](std::span<const std::size_t> drawn) -> std::optional<double> {
        return *mean_of_drawn(a, drawn) - *mean_of_drawn(b, drawn);
    };
    const auto first = bootstrap_interval(100, difference, scenarios::RandomStream(1, "test"));
    const auto second = bootstrap_interval(100, difference, scenarios::RandomStream(1, "test"));
    EXPECT_GT(first->low, 0.02);
    EXPECT_LT(first->high, 0.03);
    EXPECT_EQ(first->low, second->low);
    EXPECT_EQ(first->high, second->high);
}

TEST(Bootstrap, IsAbsentWhereTheFigureMostlyIs) {
    const auto never = [](std::span<const std::size_t>) -> std::optional<double> { return std::nullopt; };
    EXPECT_FALSE(bootstrap_interval(10, never, scenarios::RandomStream(1, "test")).has_value());
    EXPECT_FALSE(bootstrap_interval(
                     1, [](auto) { return std::optional(1.0); }, scenarios::RandomStream(1, "test"))
                     .has_value());
}

}  // namespace
}  // namespace headway::policies
