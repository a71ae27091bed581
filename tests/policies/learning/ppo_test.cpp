#include "policies/learning/ppo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/policies/learning/toy_problems.h"

namespace headway::policies {
namespace {

// ---- a contextual bandit: the context says which of the candidates' two features pays -------------------------------

struct Bandit final : ToyEpisode {
    Features shown;
    explicit Bandit(scenarios::RandomStream& stream) {
        shown.global = {stream.uniform() < 0.5 ? -1.0f : 1.0f, static_cast<float>(stream.normal())};
        const auto count = 2 + stream.below(4);
        for (std::int64_t i = 0; i < count; ++i) {
            for (int f = 0; f < 2; ++f) shown.candidates.push_back(static_cast<float>(stream.uniform()));
            shown.gain.push_back(0.0f);
            shown.cost.push_back(0.0f);
        }
    }
    double pay(std::size_t action) const { return shown.candidates[2 * action + (shown.global[0] > 0.0f ? 1 : 0)]; }
    std::size_t best() const {
        std::size_t best = 0;
        for (std::size_t i = 1; i < shown.count(); ++i) best = pay(i) > pay(best) ? i : best;
        return best;
    }
    Features features() const override { return shown; }
    bool act(int action, Step& step) override {
        step.reward = pay(static_cast<std::size_t>(action));
        step.weight = 1.0;
        return false;
    }
};

TEST(Ppo, FindsTheBestArmOfAContextualBandit) {
    NoReduction alone;
    Trainer trainer(toy_options(2, 2, 80), alone);
    scenarios::RandomStream stream(1, "test.bandit");
    for (int update = 0; update < 80; ++update) {
        std::vector<Rollout> rollouts;
        for (int i = 0; i < 200; ++i) {
            Bandit bandit(stream);
            rollouts.push_back(toy_rollout(trainer.policy(), bandit, 1, i, stream));
        }
        trainer.update(rollouts);
    }
    Scorer scorer(trainer.policy());
    double reached = 0.0;
    double possible = 0.0;
    for (int i = 0; i < 1000; ++i) {
        const Bandit bandit(stream);
        scorer.score(bandit.shown);
        reached += bandit.pay(scorer.best());
        possible += bandit.pay(bandit.best());
    }
    EXPECT_GT(reached / possible, 0.98);
}

// ---- a chain: the near reward is a trap, and episodes are cut off anywhere
// -------------------------------------------

/// States 0..5. Left: back to 0, which pays 0.3. Right: on, and in the last state it pays 1 for ever.
struct Chain final : ToyEpisode {
    static constexpr int kStates = 6;
    int state;
    explicit Chain(int start) : state(start) {}
    Features features() const override {
        Features shown;
        for (int i = 0; i < kStates; ++i) shown.global.push_back(i == state ? 1.0f : 0.0f);
        shown.candidates = {1.0f, 0.0f, 0.0f, 1.0f};
        shown.gain = shown.cost = {0.0f, 0.0f};
        return shown;
    }
    bool act(int action, Step& step) override {
        step.weight = 1.0;
        if (action == 0) {
            step.reward = 0.3;
            state = 0;
        } else {
            step.reward = state == kStates - 1 ? 1.0 : 0.0;
            state = std::min(state + 1, kStates - 1);
        }
        return true;
    }
};

/// Share of the states in which the trained policy goes right, with episodes of 3 to 8 decisions: most are over before
/// the reward, so that only what is expected behind the cut can show the way.
double right_turns_learned(bool say_that_cuts_are_ends) {
    NoReduction alone;
    TrainerOptions options = toy_options(Chain::kStates, 2, 60);
    options.ppo.discount = 0.95;
    Trainer trainer(options, alone);
    scenarios::RandomStream stream(2, "test.chain");
    for (int update = 0; update < 60; ++update) {
        std::vector<Rollout> rollouts;
        for (int i = 0; i < 100; ++i) {
            Chain chain(static_cast<int>(stream.below(Chain::kStates)));
            rollouts.push_back(toy_rollout(trainer.policy(), chain, 3 + static_cast<int>(stream.below(6)), i, stream));
            rollouts.back().terminated = say_that_cuts_are_ends;
        }
        trainer.update(rollouts);
    }
    Scorer scorer(trainer.policy());
    int right = 0;
    for (int state = 0; state < Chain::kStates; ++state) {
        scorer.score(Chain(state).features());
        right += scorer.best() == 1 ? 1 : 0;
    }
    return right / static_cast<double>(Chain::kStates);
}

TEST(Ppo, LooksPastTheCutOfAnEpisode) {
    EXPECT_EQ(right_turns_learned(false), 1.0);
}

TEST(Ppo, WouldBeShortSightedIfCutsWereEnds) {
    EXPECT_LT(right_turns_learned(true), 1.0);
}

// ---- a switch that must pay for itself
// -------------------------------------------------------------------------------

/// A slowdown of one of two kinds, which last 60 or 4 intervals on average (memoryless). Switching costs a pause and
/// gains 0.25 an interval while it lasts. Best: switch if the gain over the mean remaining time exceeds the pause.
/// Equal seeds give equal slowdowns.
struct Slowdown final : ToyEpisode {
    static constexpr double kGain = 0.25;
    static constexpr double kSpeed = 0.6;
    bool lasting;
    double pause;
    double remaining;
    bool switched = false;

    explicit Slowdown(std::uint64_t seed) {
        scenarios::RandomStream stream(seed, "test.slowdown");
        lasting = stream.uniform() < 0.5;
        pause = stream.uniform(0.1, 6.0);
        remaining = stream.exponential() * mean_time();
    }
    double mean_time() const { return lasting ? 60.0 : 4.0; }
    bool offered() const { return remaining > 0.0 && !switched; }
    /// What switching at once earns on average, in intervals.
    double worth() const { return kGain * mean_time() - pause * (kSpeed + kGain); }
    Features features() const override {
        Features shown;
        shown.global = {lasting ? 1.0f : 0.0f, remaining > 0.0 ? 1.0f : 0.0f, switched ? 1.0f : 0.0f};
        shown.gain = {0.0f, offered() ? static_cast<float>(kGain) : -0.02f};
        shown.cost = {0.0f, static_cast<float>(pause * (offered() ? kSpeed + kGain : 1.0))};
        shown.candidates = {0.0f, 0.0f, shown.gain[1], shown.cost[1]};
        return shown;
    }
    bool act(int action, Step& step) override {
        switched = switched || action == 1;
        const double speed = remaining <= 0.0 ? 1.0 : switched ? kSpeed + kGain : kSpeed;
        step.weight = 1.0 / speed + (action == 1 ? pause : 0.0);
        step.reward = 1.0 / step.weight;
        remaining -= step.weight;
        return true;
    }
};

TEST(Ppo, SwitchesOnlyWhereTheRemainingTimePaysForThePause) {
    NoReduction alone;
    Trainer trainer(toy_options(3, 2, 100), alone);
    scenarios::RandomStream stream(3, "test.slowdowns");
    for (int update = 0; update < 100; ++update) {
        std::vector<Rollout> rollouts;
        for (int group = 0; group < 20; ++group) {
            const std::uint64_t seed = stream.next();
            const int length = 8 + static_cast<int>(stream.below(30));
            for (int i = 0; i < 4; ++i) {  // the same slowdown four times
                Slowdown episode(seed);
                rollouts.push_back(toy_rollout(trainer.policy(), episode, length, group, stream));
            }
        }
        trainer.update(rollouts);
    }
    Scorer scorer(trainer.policy());
    double reached = 0.0, possible = 0.0, by_switching_always = 0.0, by_the_first_rule = 0.0;
    double horizon[2] = {};
    for (int i = 0; i < 2000; ++i) {
        const Slowdown episode(stream.next());
        scorer.score(episode.features());
        horizon[episode.lasting ? 1 : 0] = scorer.horizon();
        reached += scorer.best() == 1 ? episode.worth() : 0.0;
        possible += std::max(0.0, episode.worth());
        by_switching_always += episode.worth();
        const double first_rule = Network::kHorizon * Slowdown::kGain;
        by_the_first_rule += first_rule > episode.pause * (Slowdown::kSpeed + Slowdown::kGain) ? episode.worth() : 0.0;
    }
    EXPECT_GT(reached / possible, 0.98);
    EXPECT_LT(by_switching_always / possible, 0.9) << "the problem is no problem";
    EXPECT_LT(by_the_first_rule / possible, 0.9) << "nothing was left to learn";
    EXPECT_GT(horizon[1], horizon[0]) << "kinds that last longer have the longer horizon";
}

// ---- estimates
// -------------------------------------------------------------------------------------------------------

Step step_of(double reward, double weight, double value, double time) {
    Step step;
    step.reward = reward;
    step.weight = weight;
    step.value = value;
    step.time = time;
    return step;
}

TEST(Advantages, AreDiscountedSumsOfErrorsOverWallTime) {
    PpoOptions options;
    options.discount = 0.9;
    options.lambda = 0.8;
    Rollout rollout;
    rollout.terminated = true;
    rollout.steps = {step_of(0.5, 2.0, -0.1, 0.0), step_of(0.8, 1.0, -0.3, 2.0)};
    const Advantages estimate = estimate_advantages(rollout, options);
    const double last = 0.1 * 1.0 * (0.8 - 1.0) + 0.3;
    EXPECT_NEAR(estimate.advantage[1], last, 1e-12);
    const double first = 0.1 * 2.0 * (0.5 - 1.0) + 0.81 * -0.3 + 0.1 + 0.81 * 0.64 * last;
    EXPECT_NEAR(estimate.advantage[0], first, 1e-12);
    EXPECT_NEAR(estimate.returns[0], first - 0.1, 1e-12);
}

TEST(Advantages, BootstrapWhereAnEpisodeWasCutOff) {
    PpoOptions options;
    options.discount = 0.9;
    Rollout rollout;
    rollout.steps = {step_of(1.0, 1.0, -0.2, 0.0), step_of(-5.0, 1.0, -0.7, 1.0)};
    const Advantages estimate = estimate_advantages(rollout, options);
    EXPECT_NEAR(estimate.advantage[0], 0.9 * -0.7 + 0.2, 1e-12) << "the value of what follows counts";
    EXPECT_EQ(estimate.advantage[1], 0.0) << "nobody saw what followed it";
}

TEST(Advantages, LoseWhatTheWholeGroupMet) {
    PpoOptions options;
    std::vector<Rollout> rollouts(3);
    for (std::size_t i = 0; i < rollouts.size(); ++i) {
        rollouts[i].group = i < 2 ? 7 : 8;
        rollouts[i].terminated = true;
        for (int t = 0; t < 20; ++t) {
            const double hit = t > 10 ? 0.4 : 1.0;  // the same fault for all
            rollouts[i].steps.push_back(step_of(hit - (i == 1 ? 0.1 : 0.0), 1.0, 0.0, t));
        }
    }
    const auto estimates = estimate_advantages(rollouts, options);
    PpoOptions alone = options;
    alone.group_baseline = false;
    const auto plain = estimate_advantages(rollouts, alone);
    for (std::size_t t = 0; t < 20; ++t) {
        EXPECT_NEAR(estimates[0].advantage[t], -estimates[1].advantage[t], 1e-12);
        EXPECT_GT(estimates[0].advantage[t], 0.0) << "better than its twin at every time";
        EXPECT_EQ(estimates[2].advantage[t], plain[2].advantage[t]) << "a group of one is left as it is";
    }
    EXPECT_LT(plain[0].advantage[5], 0.0) << "against the value function alone it looked bad";
}

TEST(Adam, MovesByTheRateAgainstAConstantGradient) {
    Adam adam;
    std::vector<double> parameters = {1.0, -2.0};
    const std::vector<double> gradient = {0.5, -3.0};
    for (int i = 0; i < 10; ++i) adam.step(parameters, gradient, 0.01);
    EXPECT_NEAR(parameters[0], 0.9, 1e-6);
    EXPECT_NEAR(parameters[1], -1.9, 1e-6);
}

}  // namespace
}  // namespace headway::policies
