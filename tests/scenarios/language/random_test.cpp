#include "scenarios/language/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <vector>

namespace headway::scenarios {
namespace {

TEST(RandomStreams, RepeatForTheSameSeedAndName) {
    RandomStream a(5, "jitter", 3);
    RandomStream b(5, "jitter", 3);
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(a.next(), b.next());
}

TEST(RandomStreams, DifferBySeedNameAndIndex) {
    RandomStream reference(5, "jitter", 3);
    const std::uint64_t first = reference.next();
    EXPECT_NE(RandomStream(6, "jitter", 3).next(), first);
    EXPECT_NE(RandomStream(5, "jittes", 3).next(), first);
    EXPECT_NE(RandomStream(5, "jitter", 4).next(), first);
    EXPECT_NE(RandomStream(3, "jitter", 5).next(), first);
}

TEST(RandomStreams, GiveTheSameNumbersOnEveryMachine) {
    // Written down once; a change here changes every generated timeline.
    RandomStream stream(1, "generate/airflow");
    const std::uint64_t first = stream.next();
    const double second = stream.uniform();
    const double third = stream.normal();
    const double fourth = stream.exponential();
    EXPECT_EQ(first, 11214576874390927529ULL);
    EXPECT_EQ(second, 0x1.dea04e10d3c96p-2);
    EXPECT_EQ(third, 0x1.0066b8b061d96p+1);
    EXPECT_EQ(fourth, 0x1.0d3bcf5a1ab8dp-2);
}

TEST(RandomStreams, HaveTheMomentsOfTheirDistributions) {
    RandomStream stream(2, "moments");
    const int count = 200'000;
    double uniform = 0.0;
    double normal = 0.0;
    double normal_square = 0.0;
    double exponential = 0.0;
    double log_uniform = 0.0;
    std::vector<int> dice(6);
    for (int i = 0; i < count; ++i) {
        uniform += stream.uniform();
        const double n = stream.normal();
        normal += n;
        normal_square += n * n;
        exponential += stream.exponential();
        log_uniform += std::log(stream.log_uniform(1.0, 100.0));
        ++dice[static_cast<std::size_t>(stream.below(6))];
    }
    EXPECT_NEAR(uniform / count, 0.5, 0.005);
    EXPECT_NEAR(normal / count, 0.0, 0.01);
    EXPECT_NEAR(normal_square / count, 1.0, 0.02);
    EXPECT_NEAR(exponential / count, 1.0, 0.01);
    EXPECT_NEAR(log_uniform / count, std::log(10.0), 0.02);
    for (const int hits : dice) EXPECT_NEAR(hits, count / 6, count / 100);
    EXPECT_THROW(stream.below(0), std::invalid_argument);
    EXPECT_EQ(stream.log_uniform(2.0, 2.0), 2.0);
}

TEST(PortableFunctions, AgreeWithTheStandardLibrary) {
    for (double x = 1e-300; x < 1e300; x *= 1.37)
        ASSERT_NEAR(portable_log(x), std::log(x), 1e-14 * std::abs(std::log(x)) + 1e-15);
    for (double x = -690.0; x < 690.0; x += 0.173) ASSERT_NEAR(portable_exp(x) / std::exp(x), 1.0, 1e-13);
    EXPECT_EQ(portable_log(1.0), 0.0);
    EXPECT_EQ(portable_exp(0.0), 1.0);
    std::vector<double> many;
    for (double x = -690.0; x<690.0; x += x> - 2.0 && x < 2.0 ? 0.0013 : 1.7) many.push_back(x);
    std::vector<double> together = many;
    portable_exp(together);
    for (std::size_t i = 0; i < many.size(); ++i) ASSERT_EQ(together[i], portable_exp(many[i])) << many[i];
}

}  // namespace
}  // namespace headway::scenarios
