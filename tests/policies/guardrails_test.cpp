#include "policies/guardrails.h"

#include <gtest/gtest.h>

#include <utility>

#include "policies/learning/novelty.h"
#include "policies/shadow.h"
#include "tests/policies/rules/offered.h"

namespace headway::policies {
namespace {

/// Chooses a candidate and says how new the decision was, both from outside.
class OrderedPolicy final : public Policy, public NoveltySource {
  public:
    struct Orders {
        std::size_t candidate = 0;
        double novelty = 0.0;
    };
    explicit OrderedPolicy(Orders& orders) : orders_(orders) {}
    std::string_view name() const override { return "told"; }
    void start_episode(const ClusterFacts&, std::uint64_t) override {}
    Action decide(const Observation&, const std::vector<Candidate>&) override { return {orders_.candidate}; }
    double novelty() const override { return orders_.novelty; }

  private:
    Orders& orders_;
};

Observation after(double iteration_s, const scenarios::Plan& plan) {
    Observation observation = seen_at(1.0);
    observation.iteration = Duration::seconds(iteration_s);
    observation.plan = plan;
    return observation;
}

/// What is offered while the job runs under `plan`: keep, and to go to the other one.
std::vector<Candidate> offers(int flavour, double keep_s, double other_s) {
    return {offered(Candidate::Kind::kKeep, small_plan(flavour), keep_s),
            offered(Candidate::Kind::kShareMicroBatches, small_plan(1 - flavour), other_s)};
}

class Guards : public ::testing::Test {
  protected:
    GuardedPolicy make(const GuardOptions& options) {
        GuardedPolicy guarded(std::make_unique<OrderedPolicy>(orders), make_policy("greedy"), options);
        guarded.start_episode({}, 1);
        return guarded;
    }
    OrderedPolicy::Orders orders;
};

TEST_F(Guards, HandOverWhereThePolicyWasNotTrained) {
    GuardedPolicy guarded = make({});
    const auto candidates = offers(0, 2.0, 1.0);
    EXPECT_EQ(guarded.decide(after(2.0, small_plan()), candidates).candidate, 0u) << "the policy keeps";
    orders.novelty = 1.5;
    const Action action = guarded.decide(after(2.0, small_plan()), candidates);
    EXPECT_EQ(action.candidate, 1u) << "greedy switches";
    EXPECT_EQ(action.by, Action::By::kRule);
}

TEST_F(Guards, LeaveThePolicyAloneWhenSwitchedOff) {
    GuardOptions off;
    off.out_of_distribution = false;
    off.rollback = false;
    GuardedPolicy guarded = make(off);
    orders.novelty = 9.0;
    const Action action = guarded.decide(after(2.0, small_plan()), offers(0, 2.0, 1.0));
    EXPECT_EQ(action.candidate, 0u);
    EXPECT_EQ(action.by, Action::By::kPolicy);
    orders.candidate = 1;
    guarded.decide(after(2.0, small_plan()), offers(0, 2.0, 1.0));
    orders.candidate = 0;
    EXPECT_EQ(guarded.decide(after(3.0, small_plan(1)), offers(1, 3.0, 2.0)).candidate, 0u) << "no way back";
}

TEST_F(Guards, TakeBackASwitchThatMissedItsPrediction) {
    GuardOptions options;
    options.banned_decisions = 3;
    GuardedPolicy guarded = make(options);
    orders.candidate = 1;
    EXPECT_EQ(guarded.decide(after(2.0, small_plan()), offers(0, 2.0, 1.0)).candidate, 1u);
    orders.candidate = 0;
    const Action back = guarded.decide(after(2.5, small_plan(1)), offers(1, 2.5, 2.0));
    EXPECT_EQ(back.candidate, 1u);
    EXPECT_EQ(back.by, Action::By::kRollback);
    // The plan that failed is not tried again for a while.
    orders.candidate = 1;
    EXPECT_EQ(guarded.decide(after(2.0, small_plan()), offers(0, 2.0, 1.0)).candidate, 0u);
    EXPECT_EQ(guarded.decide(after(2.0, small_plan()), offers(0, 2.0, 1.0)).candidate, 0u);
    EXPECT_EQ(guarded.decide(after(2.0, small_plan()), offers(0, 2.0, 1.0)).candidate, 1u) << "the ban is over";
}

TEST_F(Guards, LetASwitchStandWhoseWayBackIsTooDear) {
    GuardOptions options;
    options.horizon = Duration::seconds(100);
    GuardedPolicy guarded = make(options);
    orders.candidate = 1;
    guarded.decide(after(2.0, small_plan()), offers(0, 2.0, 1.0));
    orders.candidate = 0;
    auto dear = offers(1, 2.5, 2.0);  // a fifth of the time saved: 20 s of 100
    dear[1].predicted.pause = Duration::seconds(21);
    EXPECT_EQ(guarded.decide(after(2.5, small_plan(1)), dear).candidate, 0u);
}

TEST_F(Guards, LetASwitchStandThatHelpedLessThanPredicted) {
    GuardedPolicy guarded = make({});
    orders.candidate = 1;
    guarded.decide(after(2.0, small_plan()), offers(0, 2.0, 1.0));
    orders.candidate = 0;
    EXPECT_EQ(guarded.decide(after(1.8, small_plan(1)), offers(1, 1.8, 2.0)).candidate, 0u) << "better than before";
    orders.candidate = 1;
    guarded.decide(after(1.8, small_plan(1)), offers(1, 1.8, 1.7));
    orders.candidate = 0;
    EXPECT_EQ(guarded.decide(after(1.85, small_plan()), offers(0, 1.85, 1.8)).candidate, 0u) << "within the margin";
}

TEST_F(Guards, DoNotTakeBackWhatALossDid) {
    GuardedPolicy guarded = make({});
    orders.candidate = 1;
    guarded.decide(after(2.0, small_plan()), offers(0, 2.0, 1.0));
    orders.candidate = 0;
    auto lost = offers(1, 0.0, 1.0);
    lost[0].kind = Candidate::Kind::kWaitForReplacement;
    EXPECT_EQ(guarded.decide(after(0.0, small_plan(1)), lost).candidate, 0u);
    EXPECT_EQ(guarded.decide(after(9.0, small_plan(1)), offers(1, 9.0, 1.0)).candidate, 0u) << "long past the switch";
}

TEST_F(Guards, AreOnlyForTrainedPolicies) {
    const auto rule = make_guarded_policy("hysteresis", {}, {});
    EXPECT_EQ(dynamic_cast<GuardedPolicy*>(rule.get()), nullptr);
}

TEST(Shadow, CountsThePauseOfAPlanOnceAndItsGainAtEveryDecision) {
    ShadowedPolicy shadowed(make_policy("static"), make_policy("greedy"), 10);
    shadowed.start_episode({}, 1);
    const std::vector<Candidate> slow = {kept(2.0), shares(1.5, 30.0)};
    EXPECT_EQ(shadowed.decide(seen_at(1), slow).candidate, 0u) << "the shadow does not act";
    EXPECT_EQ(shadowed.choice().policy, "greedy");
    EXPECT_EQ(shadowed.choice().chosen, 1);
    EXPECT_EQ(shadowed.choice().regret_ns, 25'000'000'000) << "30 s of pause against 10 iterations of 0.5 s saved";
    shadowed.decide(seen_at(2), slow);
    EXPECT_EQ(shadowed.choice().regret_ns, -5'000'000'000);
    shadowed.decide(seen_at(3), {kept(1.0), shares(1.1, 30.0)});
    EXPECT_EQ(shadowed.choice().chosen, 0);
    EXPECT_EQ(shadowed.choice().regret_ns, 0);
}

TEST(Shadow, ComparesLostTimesAfterALoss) {
    ShadowedPolicy shadowed(make_policy("static"), make_policy("greedy"), 10);
    shadowed.start_episode({}, 1);
    shadowed.decide(seen_at(1), {offered(Candidate::Kind::kWaitForReplacement, small_plan(), 1.0, 100.0),
                                 offered(Candidate::Kind::kRestart, small_plan(0, 3), 2.0, 20.0)});
    EXPECT_EQ(shadowed.choice().regret_ns, -40'000'000'000) << "60 s lost by a restart, 100 s by waiting";
}

}  // namespace
}  // namespace headway::policies
