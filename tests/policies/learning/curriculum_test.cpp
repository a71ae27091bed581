#include "policies/learning/curriculum.h"

#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>

namespace headway::policies {
namespace {

TEST(Curriculum, GivesMoreOfTheTimeToScenariosWithAGap) {
    Curriculum curriculum(4);
    for (int visit = 0; visit < 20; ++visit) {
        curriculum.record(0, 0.9, 0.9);
        curriculum.record(1, 0.7, 0.9);
        curriculum.record(2, 0.8, 0.9);
        curriculum.record(3, 0.95, 0.9);  // better than the reference: no gap
    }
    const std::vector<double> p = curriculum.probabilities();
    EXPECT_NEAR(std::accumulate(p.begin(), p.end(), 0.0), 1.0, 1e-12);
    EXPECT_GT(p[1], 1.5 * p[2]);
    EXPECT_GT(p[2], p[0]);
    EXPECT_GE(p[0], 0.1) << "nothing is forgotten";
    EXPECT_NEAR(p[3], p[0], 1e-4);

    scenarios::RandomStream stream(1, "test.curriculum");
    std::vector<int> drawn(4, 0);
    for (int i = 0; i < 10000; ++i) ++drawn[curriculum.draw(stream)];
    for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(drawn[i] / 10000.0, p[i], 0.02);
}

TEST(Curriculum, DrawsEvenlyWhereNothingIsKnown) {
    for (const double p : Curriculum(5).probabilities()) EXPECT_NEAR(p, 0.2, 1e-12);
}

TEST(Curriculum, DrawsEvenlyWhereNoGapIsLeft) {
    CurriculumOptions options;
    options.memory = 0.0;
    Curriculum curriculum(2, options);
    curriculum.record(0, 1.0, 0.9);
    curriculum.record(1, 1.0, 0.9);
    for (const double p : curriculum.probabilities()) EXPECT_NEAR(p, 0.5, 1e-12);
}

TEST(Curriculum, ComesBackFromACheckpoint) {
    Curriculum curriculum(3);
    curriculum.record(1, 0.2, 0.9);
    Curriculum other(3);
    other.restore(curriculum.bytes());
    EXPECT_EQ(other.probabilities(), curriculum.probabilities());
    EXPECT_THROW(Curriculum(4).restore(curriculum.bytes()), std::runtime_error);
    EXPECT_THROW(Curriculum(0), std::invalid_argument);
}

}  // namespace
}  // namespace headway::policies
