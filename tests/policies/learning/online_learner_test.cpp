#include "policies/learning/online_learner.h"

#include <gtest/gtest.h>

#include "policies/learning/learned_policy.h"
#include "policies/learning/normaliser.h"
#include "policies/learning/policy_file.h"
#include "tests/policies/learning/small_decision.h"

namespace headway::policies {
namespace {

TrainedPolicy beginner() {
    TrainedPolicy policy;
    policy.shape = default_shape();
    scenarios::RandomStream stream(2, "test.beginner");
    policy.parameters = Network::initial_parameters(policy.shape, stream);
    policy.global_normaliser = empty_normaliser(global_features().size());
    policy.candidate_normaliser = empty_normaliser(candidate_features().size());
    return policy;
}

/// A job in which the second candidate looks a little better and costs far more than was said.
struct Trap {
    SmallDecision decision;
    Trap() {
        decision.candidates[1].predicted.pause = Duration::seconds(150);
        decision.candidates.pop_back();
    }
    /// Runs `decisions` of them; returns the probability-free score of the trap over keeping at the end.
    void run(OnlineLearner& learner, int decisions) {
        learner.start_episode(decision.facts, 3);
        Observation observation = decision.observation;
        for (int i = 0; i < decisions; ++i) {
            Decision made;
            made.observation = observation;
            made.candidates = decision.candidates;
            made.chosen = learner.decide(observation, decision.candidates);
            learner.decided(made);
            Interval interval;
            interval.iterations = 10;
            interval.wall = Duration::seconds(made.chosen.candidate == 1 ? 600 : 150);
            learner.earned(interval);
            observation.now += Duration::seconds(150);
        }
    }
};

double preference(const TrainedPolicy& trained, const SmallDecision& decision) {
    LearnedPolicy policy(trained);
    policy.start_episode(decision.facts, 1);
    policy.decide(decision.observation, decision.candidates);
    return policy.scores()[1] - policy.scores()[0];
}

TEST(OnlineLearner, LearnsFromWhatTheJobMeasures) {
    Trap trap;
    OnlineOptions options;
    options.explore = 1.0;
    options.learning_rate = 2e-3;
    options.total_kl = 10.0;
    options.step_kl = 0.5;
    OnlineLearner learner(beginner(), options);
    trap.run(learner, 600);
    EXPECT_GT(learner.updates(), 10);
    EXPECT_LT(preference(learner.policy(), trap.decision), preference(learner.original(), trap.decision) - 0.5);
}

TEST(OnlineLearner, StaysWithinItsLimitsAndGoesBack) {
    Trap trap;
    OnlineOptions options;
    options.explore = 1.0;
    options.learning_rate = 1e-2;
    options.total_kl = 0.02;
    options.step_kl = 0.01;
    OnlineLearner learner(beginner(), options);
    trap.run(learner, 600);
    EXPECT_GT(learner.refused(), 0) << "the limits were never reached";
    EXPECT_LE(learner.distance(), options.total_kl);
    EXPECT_NE(policy_bytes(learner.policy()), policy_bytes(beginner()));
    EXPECT_EQ(policy_bytes(learner.original()), policy_bytes(beginner()));
    learner.revert();
    EXPECT_EQ(policy_bytes(learner.policy()), policy_bytes(beginner()));
    EXPECT_EQ(learner.distance(), 0.0);
}

TEST(OnlineLearner, WithoutUpdatesDecidesAsThePolicyItBeganWith) {
    SmallDecision decision;
    OnlineLearner learner(beginner());
    LearnedPolicy policy(beginner());
    learner.start_episode(decision.facts, 1);
    policy.start_episode(decision.facts, 1);
    EXPECT_EQ(learner.decide(decision.observation, decision.candidates).candidate,
              policy.decide(decision.observation, decision.candidates).candidate);
}

TEST(OnlineLearner, IsDeterministic) {
    std::string bytes[2];
    for (std::string& result : bytes) {
        Trap trap;
        OnlineOptions options;
        options.explore = 0.5;
        OnlineLearner learner(beginner(), options);
        trap.run(learner, 200);
        result = policy_bytes(learner.policy());
    }
    EXPECT_EQ(bytes[0], bytes[1]);
    EXPECT_NE(bytes[0], policy_bytes(beginner()));
}

}  // namespace
}  // namespace headway::policies
