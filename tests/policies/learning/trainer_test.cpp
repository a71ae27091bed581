#include "policies/learning/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <thread>
#include <vector>

#include "policies/learning/framed_file.h"
#include "policies/learning/normaliser.h"
#include "policies/learning/policy_file.h"
#include "scenarios/language/config_error.h"
#include "tests/policies/learning/toy_problems.h"

namespace headway::policies {
namespace {

using ::testing::HasSubstr;

/// The second candidate pays where the first global feature is positive; the third never.
struct Choice final : ToyEpisode {
    scenarios::RandomStream& stream;
    float context;
    int left = 5;
    explicit Choice(scenarios::RandomStream& s) : stream(s), context(static_cast<float>(s.normal())) {}
    Features features() const override {
        Features shown;
        shown.global = {context, 1.0f};
        shown.candidates = {1.0f, 0.0f, 0.0f, 1.0f, 0.0f, 0.0f};
        shown.gain = {0.0f, 0.01f, -0.1f};
        shown.cost = {0.0f, 0.1f, 0.1f};
        return shown;
    }
    int best() const { return context > 0.0f ? 1 : 0; }
    bool act(int action, Step& step) override {
        step.weight = 1.0;
        step.reward = action == best() ? 1.0 : 0.5;
        context = static_cast<float>(stream.normal());
        return --left > 0;
    }
};

std::vector<Rollout> some_rollouts(const TrainedPolicy& policy, std::uint64_t seed, int episodes = 20) {
    scenarios::RandomStream stream(seed, "test.rollouts");
    std::vector<Rollout> rollouts;
    for (int i = 0; i < episodes; ++i) {
        Choice episode(stream);
        rollouts.push_back(toy_rollout(policy, episode, 4 + i % 3, i / 2, stream));
    }
    return rollouts;
}

TEST(Trainer, GivesTheSameBytesForTheSameRollouts) {
    std::string bytes[2];
    for (std::string& result : bytes) {
        NoReduction alone;
        Trainer trainer(toy_options(2, 2, 5), alone);
        for (std::uint64_t update = 0; update < 5; ++update) trainer.update(some_rollouts(trainer.policy(), update));
        result = policy_bytes(trainer.policy()) + trainer.checkpoint();
    }
    EXPECT_EQ(bytes[0], bytes[1]);
}

TEST(Trainer, ResumesBitForBit) {
    NoReduction alone;
    TrainerOptions options = toy_options(2, 2, 6);
    options.curriculum = "default";
    Trainer straight(options, alone);
    straight.imitate(some_rollouts(straight.policy(), 99), 2);
    for (std::uint64_t update = 0; update < 3; ++update) straight.update(some_rollouts(straight.policy(), update));
    const std::string checkpoint = straight.checkpoint();
    for (std::uint64_t update = 3; update < 6; ++update) straight.update(some_rollouts(straight.policy(), update));

    Trainer resumed = Trainer::resume(checkpoint, "my.checkpoint", alone);
    EXPECT_EQ(resumed.updates_done(), 3);
    EXPECT_EQ(resumed.checkpoint(), checkpoint);
    for (std::uint64_t update = 3; update < 6; ++update) resumed.update(some_rollouts(resumed.policy(), update));
    EXPECT_EQ(resumed.checkpoint(), straight.checkpoint());
}

TEST(Trainer, RefusesACheckpointThatItCannotUse) {
    NoReduction alone;
    const std::string good = Trainer(toy_options(2, 2, 6), alone).checkpoint();
    const auto error_of = [&](const std::string& bytes) -> std::string {
        try {
            Trainer::resume(bytes, "my.checkpoint", alone);
        } catch (const scenarios::ConfigError& error) {
            return error.what();
        }
        return "";
    };
    EXPECT_EQ(error_of(good), "");
    EXPECT_THAT(error_of(good.substr(0, good.size() / 2)), HasSubstr("corrupt or cut short"));
    EXPECT_THAT(error_of("HEADWAYP" + good.substr(8)), HasSubstr("not a training checkpoint"));
    std::string other = good;
    other[8] = 77;
    EXPECT_THAT(error_of(other), HasSubstr("version 77, this program reads version 1"));
}

TEST(Trainer, LearnsWhatATeacherDoes) {
    NoReduction alone;
    TrainerOptions options = toy_options(2, 2, 1);
    options.imitation_rate = 1e-2;
    options.imitation_minibatch = 50;
    Trainer trainer(options, alone);
    std::vector<Rollout> demonstrations = some_rollouts(trainer.policy(), 5, 120);
    for (Rollout& rollout : demonstrations) {
        for (Step& step : rollout.steps) step.action = step.features.global[0] > 0.0f ? 1 : 0;
    }
    const ImitationReport first = trainer.imitate(demonstrations, 1);
    const ImitationReport last = trainer.imitate(demonstrations, 30);
    EXPECT_LT(last.loss, 0.3 * first.loss);
    EXPECT_GT(last.agreement, 0.95);
    EXPECT_EQ(trainer.policy().provenance.imitation_epochs, 31);
}

TEST(Trainer, LearnsNothingFromAChoiceThatItWillNotHave) {
    NoReduction alone;
    Trainer trainer(toy_options(2, 2, 1), alone);
    std::vector<Rollout> demonstrations = some_rollouts(trainer.policy(), 6, 4);
    std::int64_t open = 0;
    for (Rollout& rollout : demonstrations) {
        for (std::size_t t = 0; t < rollout.steps.size(); ++t) {
            Step& step = rollout.steps[t];
            step.action = t % 2 == 0 ? 2 : 1;
            step.allowed = {1, 1, 0};
            const bool judged = rollout.terminated || t + 1 < rollout.steps.size();
            open += judged && t % 2 == 1 ? 1 : 0;
        }
    }
    const ImitationReport report = trainer.imitate(demonstrations, 20);
    EXPECT_EQ(report.decisions, open);
    EXPECT_EQ(report.agreement, 1.0);
}

TEST(Trainer, ReportsWhatHappened) {
    NoReduction alone;
    Trainer trainer(toy_options(2, 2, 30), alone);
    UpdateReport report;
    for (std::uint64_t update = 0; update < 30; ++update) {
        report = trainer.update(some_rollouts(trainer.policy(), update, 40));
        EXPECT_EQ(report.update, static_cast<std::int64_t>(update) + 1);
        EXPECT_EQ(report.episodes, 40);
        EXPECT_GT(report.gradient_norm, 0.0);
        EXPECT_GE(report.kl, 0.0);
        EXPECT_LE(report.clip_fraction, 1.0);
    }
    EXPECT_LT(report.entropy, 0.6) << "it made up its mind";
    EXPECT_NEAR(report.learning_rate, 5e-3 * (1.0 - 0.95 * 29.0 / 30.0), 1e-9) << "the rate falls";
    EXPECT_GT(trainer.policy().provenance.decisions, 30 * 100);
    EXPECT_EQ(trainer.policy().global_ranges.size(), 2u);
    EXPECT_NEAR(trainer.policy().global_normaliser.mean[1], 1.0, 1e-6);
}

/// Two threads as two processes.
class Meeting {
  public:
    std::vector<double> sums[2];
    std::barrier<> barrier{2};
};

class Half final : public Reduction {
  public:
    Half(int rank, Meeting& meeting) : rank_(rank), meeting_(meeting) {}
    int rank() const override { return rank_; }
    int size() const override { return 2; }
    void sum(std::span<double> values) override {
        meeting_.sums[rank_].assign(values.begin(), values.end());
        meeting_.barrier.arrive_and_wait();
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = meeting_.sums[0][i] + meeting_.sums[1][i];
        meeting_.barrier.arrive_and_wait();
    }

  private:
    int rank_;
    Meeting& meeting_;
};

TEST(Trainer, EndsWithEqualPoliciesInAllProcesses) {
    Meeting meeting;
    std::string result[2];
    double entropy[2] = {};
    const auto train = [&](int rank) {
        Half half(rank, meeting);
        Trainer trainer(toy_options(2, 2, 20), half);
        trainer.imitate(some_rollouts(trainer.policy(), 50 + static_cast<std::uint64_t>(rank), 8), 2);
        for (std::uint64_t update = 0; update < 20; ++update) {
            // The second process brings fewer, and once none at all.
            const int episodes = rank == 0 ? 30 : update == 3 ? 0 : 10;
            const auto seed = 2 * update + static_cast<std::uint64_t>(rank);
            entropy[rank] = trainer.update(some_rollouts(trainer.policy(), seed, episodes)).entropy;
        }
        result[rank] = trainer.checkpoint();
    };
    std::thread second(train, 1);
    train(0);
    second.join();
    EXPECT_EQ(result[0], result[1]);
    EXPECT_EQ(entropy[0], entropy[1]);
}

TEST(Normaliser, MergesToTheMeanAndDeviationOfAll) {
    scenarios::RandomStream stream(1, "test.normaliser");
    std::vector<float> rows;
    double sum = 0.0, squares = 0.0;
    Normaliser normaliser = empty_normaliser(1);
    for (int part = 0; part < 3; ++part) {
        rows.clear();
        for (int i = 0; i < 100 + part; ++i) {
            rows.push_back(static_cast<float>(100.0 + part + stream.normal()));
            sum += rows.back();
            squares += static_cast<double>(rows.back()) * rows.back();
        }
        std::vector<double> sums(3, 0.0);
        add_sums(normaliser, rows, sums);
        merge(normaliser, sums);
    }
    EXPECT_NEAR(normaliser.mean[0], sum / 303.0, 1e-9);
    EXPECT_NEAR(normaliser.squares[0], squares - sum * sum / 303.0, 1e-4);
}

}  // namespace
}  // namespace headway::policies
