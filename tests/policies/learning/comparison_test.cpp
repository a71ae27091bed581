#include "policies/learning/comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "policies/learning/scorer.h"
#include "policies/learning/trainer.h"
#include "tests/policies/learning/slowing_cluster.h"
#include "tests/policies/learning/toy_problems.h"

namespace headway::policies {
namespace {

ComparisonOptions slowing_options() {
    ComparisonOptions options;
    options.episode.decision_interval = 10;
    options.episode.max_time = Duration::seconds(400);
    options.decisions = 1000;
    options.alternatives = 1000;
    options.discount = 1.0;
    return options;
}

std::vector<Comparison> comparisons_of(std::uint64_t seed, const ComparisonOptions& options,
                                       double* goodput = nullptr) {
    SlowingCluster cluster(Duration::seconds(100000));
    CandidateGenerator generator(cluster.facts());
    scenarios::RandomStream stream(seed, "test.comparison");
    return compare_choices(cluster, generator, fresh_policy(), options, stream, goodput);
}

TEST(Comparison, MeasuresWhatAnotherChoiceWouldHaveEarned) {
    double goodput = 0.0;
    const std::vector<Comparison> comparisons = comparisons_of(1, slowing_options(), &goodput);
    ASSERT_FALSE(comparisons.empty());
    EXPECT_GT(goodput, 0.6);
    EXPECT_LE(goodput, 1.0);
    bool differ = false;
    for (const Comparison& comparison : comparisons) {
        ASSERT_EQ(comparison.tried.size() + 1, comparison.features.count()) << "all others were tried";
        for (std::size_t i = 0; i < comparison.tried.size(); ++i) {
            EXPECT_NE(comparison.tried[i], comparison.chosen);
            // No choice can earn or lose more than all that the slowdown takes: a third of 30 intervals.
            EXPECT_LT(std::abs(comparison.advantage[i]), 15.0);
            differ = differ || comparison.advantage[i] != 0.0;
        }
    }
    EXPECT_TRUE(differ) << "no choice made a difference";
}

TEST(Comparison, RepeatsItselfAndPassesThroughAPipe) {
    ComparisonOptions options = slowing_options();
    options.decisions = 3;
    options.alternatives = 1;
    const std::string bytes = comparison_bytes(comparisons_of(2, options));
    EXPECT_EQ(comparison_bytes(comparisons_of(2, options)), bytes);
    EXPECT_EQ(comparison_bytes(comparisons_from_bytes(bytes)), bytes);
    EXPECT_LE(comparisons_from_bytes(bytes).size(), 3u);
    EXPECT_THROW(comparisons_from_bytes(bytes.substr(0, bytes.size() - 1)), std::runtime_error);
    EXPECT_THROW(comparisons_from_bytes("nonsense"), std::runtime_error);
}

TEST(Comparison, TeachesTheNetworkWhatIsBetterOnAverage) {
    // What the second candidate earns is 2 or -1 by chance where the context is positive, and -0.5 elsewhere.
    NoReduction alone;
    TrainerOptions options = toy_options(2, 2, 1);
    options.shape = {2, 2, 32, 16, 32, 16, 12};
    Trainer trainer(options, alone);
    scenarios::RandomStream stream(5, "test.averages");
    std::vector<Comparison> comparisons;
    for (int i = 0; i < 2000; ++i) {
        Comparison comparison;
        const float context = stream.uniform() < 0.5 ? -1.0f : 1.0f;
        comparison.features.global = {context, static_cast<float>(stream.normal())};
        comparison.features.candidates = {1.0f, 0.0f, 0.0f, 1.0f};
        comparison.features.gain = {0.0f, 0.0f};
        comparison.features.cost = {0.0f, 0.0f};
        comparison.chosen = stream.uniform() < 0.5 ? 0 : 1;
        const double earned = context < 0.0f ? -0.5 : stream.uniform() < 0.5 ? 2.0 : -1.0;
        comparison.tried = {1 - comparison.chosen};
        comparison.advantage = {comparison.chosen == 0 ? earned : -earned};
        comparisons.push_back(comparison);
    }
    trainer.learn_from(comparisons, 40, 3e-3);
    const ComparisonReport report = trainer.learn_from(comparisons, 1, 1e-6);
    EXPECT_EQ(report.decisions, 2000);
    EXPECT_EQ(report.comparisons, 2000);
    Scorer scorer(trainer.policy());
    Features features = comparisons[0].features;
    for (const float context : {-1.0f, 1.0f}) {
        features.global = {context, 0.0f};
        scorer.score(features);
        EXPECT_EQ(scorer.best(), context < 0.0f ? 0u : 1u) << "best on average, though it often turns out worse";
    }
}

TEST(Comparison, HasTheGradientOfWhatIsExpected) {
    Comparison comparison;
    comparison.chosen = 2;
    comparison.tried = {0, 3};
    comparison.advantage = {1.5, -0.7};
    std::vector<double> logits = {0.3, 9.0, -0.4, 0.1};
    std::vector<double> by_logits(4, 0.0);
    const ComparisonTerms terms = comparison_terms(logits, comparison, by_logits);
    EXPECT_EQ(terms.most, 1.5);
    EXPECT_EQ(terms.reached, 1.5);
    for (std::size_t i = 0; i < logits.size(); ++i) {
        constexpr double kStep = 1e-6;
        std::vector<double> ignored(4, 0.0);
        const double kept = logits[i];
        logits[i] = kept + kStep;
        const double above = comparison_terms(logits, comparison, ignored).loss;
        logits[i] = kept - kStep;
        const double below = comparison_terms(logits, comparison, ignored).loss;
        logits[i] = kept;
        EXPECT_NEAR(by_logits[i], (above - below) / (2.0 * kStep), 1e-8);
    }
    EXPECT_EQ(by_logits[1], 0.0) << "a candidate that was not compared stays where it is";
}

}  // namespace
}  // namespace headway::policies
