#include "policies/episode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <stdexcept>

#include "tests/scenarios/costs/shipped_job.h"

namespace headway::policies {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Measurements trained(int iterations) {
    Measurements measured;
    measured.iterations.assign(static_cast<std::size_t>(iterations), Duration::seconds(1));
    return measured;
}

Measurements lost_after(int iterations) {
    Measurements measured = trained(iterations);
    measured.loss = Loss{{0}, Duration::seconds(9)};
    return measured;
}

Measurements ended_after(int iterations) {
    Measurements measured = trained(iterations);
    measured.ended = true;
    return measured;
}

/// A job on one GPU: nothing but its plan is legal.
ClusterFacts one_gpu() {
    ClusterFacts facts;
    facts.job = scenarios::job_of(scenarios::gpt(4, 1024, 16, 1024), 1, 8);
    facts.cluster = scenarios::dgx_a100(1);
    facts.cluster.node_groups.front().node.gpus = 1;
    facts.initial_plan = scenarios::initial_plan({}, facts.job, facts.cluster);
    facts.healthy_iteration = Duration::seconds(1);
    return facts;
}

/// Answers `run` with a script and writes down what it was asked.
class Stage final : public TrainingCluster {
  public:
    explicit Stage(std::deque<Measurements> script) : script_(std::move(script)) {}

    const ClusterFacts& facts() const override { return facts_; }
    void start_episode(std::uint64_t seed) override { calls.push_back("start " + std::to_string(seed)); }
    Measurements run(const scenarios::Plan&, int iterations) override {
        calls.push_back("run " + std::to_string(iterations));
        Measurements measured = script_.empty() ? trained(iterations) : script_.front();
        if (!script_.empty()) script_.pop_front();
        now_ += Duration::seconds(1) * static_cast<std::int64_t>(measured.iterations.size());
        return measured;
    }
    Duration move_to(const scenarios::Plan&) override {
        calls.push_back("move");
        return {};
    }
    RecoveryOutcome recover(const Recovery&) override {
        calls.push_back("recover");
        now_ += Duration::seconds(100);
        return {Duration::seconds(100), 3, facts_.initial_plan};
    }
    Duration now() const override { return now_; }

    std::vector<std::string> calls;

  private:
    ClusterFacts facts_ = one_gpu();
    std::deque<Measurements> script_;
    Duration now_;
};

/// Keeps what it is told; ends the episode after `most` decisions.
class Told final : public EpisodeSink {
  public:
    explicit Told(std::size_t most = 1000) : most_(most) {}
    bool decided(const Decision& decision) override {
        decisions.push_back(decision);
        return decisions.size() < most_;
    }
    void earned(const Interval& interval) override { intervals.push_back(interval); }
    std::vector<Decision> decisions;
    std::vector<Interval> intervals;

  private:
    std::size_t most_;
};

EpisodeSummary play(Stage& cluster, Policy& policy, const EpisodeOptions& options, EpisodeSink& sink) {
    CandidateGenerator generator(cluster.facts());
    return run_episode(cluster, generator, policy, options, sink);
}
EpisodeSummary play(Stage& cluster, Policy& policy, const EpisodeOptions& options) {
    EpisodeSink silent;
    return play(cluster, policy, options, silent);
}

/// Chooses by a script; the first candidate when that is used up.
class Scripted final : public Policy {
  public:
    explicit Scripted(std::deque<std::size_t> choices = {}) : choices_(std::move(choices)) {}
    std::string_view name() const override { return "scripted"; }
    void start_episode(const ClusterFacts&, std::uint64_t) override {}
    Action decide(const Observation& observation, const std::vector<Candidate>& candidates) override {
        seen.push_back(observation);
        offered.push_back(candidates.size());
        if (choices_.empty()) return {0};
        const std::size_t choice = choices_.front();
        choices_.pop_front();
        return {choice};
    }
    std::vector<Observation> seen;
    std::vector<std::size_t> offered;

  private:
    std::deque<std::size_t> choices_;
};

EpisodeOptions every_five(std::int64_t max_iterations) {
    EpisodeOptions options;
    options.decision_interval = 5;
    options.max_iterations = max_iterations;
    options.seed = 3;
    return options;
}

TEST(Episode, DecidesAfterEveryIntervalAndNotAfterTheLast) {
    Stage cluster({});
    Scripted policy;
    const EpisodeSummary summary = play(cluster, policy, every_five(12));
    EXPECT_THAT(cluster.calls, ElementsAre("start 3", "run 5", "run 5", "run 2"));
    EXPECT_EQ(summary.iterations, 12);
    EXPECT_EQ(summary.decisions, 2);
    EXPECT_EQ(summary.wall, Duration::seconds(12));
    EXPECT_TRUE(summary.complete);
    EXPECT_THAT(policy.offered, ElementsAre(1u, 1u));
    EXPECT_EQ(policy.seen[1].now, Duration::seconds(10));
}

TEST(Episode, EndsWhenTheClusterSaysSo) {
    Stage cluster({trained(5), ended_after(2)});
    Scripted policy;
    const EpisodeSummary summary = play(cluster, policy, every_five(0));
    EXPECT_EQ(summary.iterations, 7);
    EXPECT_EQ(summary.decisions, 1);
}

TEST(Episode, RecoversAfterALossAndTrainsAgainWhatWasLost) {
    Stage cluster({lost_after(4)});
    Scripted policy;
    const EpisodeSummary summary = play(cluster, policy, every_five(6));
    EXPECT_THAT(cluster.calls, ElementsAre("start 3", "run 5", "recover", "run 5"));  // 4 - 3 + 5 = 6
    EXPECT_EQ(summary.iterations, 6);
    EXPECT_EQ(summary.iterations_lost, 3);
    EXPECT_EQ(summary.paused, Duration::seconds(100));
    EXPECT_EQ(summary.wall, Duration::seconds(109));
    ASSERT_EQ(policy.seen.size(), 1u);
    EXPECT_TRUE(policy.seen[0].loss);
}

TEST(Episode, TellsWhatBecameOfEveryDecision) {
    Stage cluster({trained(5), lost_after(2), trained(5)});
    Scripted policy;
    Told told;
    play(cluster, policy, every_five(9), told);  // 5 + 2 - 3 + 5 = 9
    ASSERT_EQ(told.intervals.size(), 2u);
    EXPECT_EQ(told.intervals[0].iterations, 2);
    EXPECT_EQ(told.intervals[0].wall, Duration::seconds(2));
    EXPECT_FALSE(told.intervals[0].last);
    EXPECT_EQ(told.intervals[1].iterations, 5);
    EXPECT_EQ(told.intervals[1].iterations_lost, 3);
    EXPECT_EQ(told.intervals[1].wall, Duration::seconds(105));
    EXPECT_TRUE(told.intervals[1].last);
    EXPECT_TRUE(told.intervals[1].truncated) << "the job would have gone on";
    EXPECT_DOUBLE_EQ(reward(told.intervals[1], Duration::seconds(1)), 2.0 / 105.0);
}

TEST(Episode, TellsTheSinkBeforeItActsAndStopsWhenAsked) {
    Stage cluster({trained(5), lost_after(0)});
    Scripted policy;
    Told told(2);
    const EpisodeSummary summary = play(cluster, policy, every_five(0), told);
    ASSERT_EQ(told.decisions.size(), 2u);
    EXPECT_EQ(told.decisions[0].candidates.at(0).kind, Candidate::Kind::kKeep);
    EXPECT_EQ(told.decisions[1].candidates.at(0).kind, Candidate::Kind::kWaitForReplacement);
    EXPECT_EQ(told.decisions[1].iteration, 5);
    EXPECT_THAT(cluster.calls, ElementsAre("start 3", "run 5", "run 5")) << "the recovery was not begun";
    EXPECT_FALSE(summary.complete);
}

TEST(Episode, NamesThePolicyThatChoosesWhatDoesNotExist) {
    Stage cluster({});
    Scripted policy({1});
    try {
        play(cluster, policy, every_five(0));
        FAIL() << "acted on a candidate that does not exist";
    } catch (const std::logic_error& error) {
        EXPECT_THAT(error.what(), HasSubstr("'scripted'"));
    }
}

TEST(Episode, DoesNotWaitForAClusterThatDoesNothing) {
    Stage cluster({trained(0)});
    Scripted policy;
    EXPECT_THROW(play(cluster, policy, every_five(0)), std::logic_error);
    EpisodeOptions no_interval;
    no_interval.decision_interval = 0;
    EXPECT_THROW(play(cluster, policy, no_interval), std::invalid_argument);
}

TEST(DecisionEvent, KeepsWhatThePolicyWasToldAndWhatWasPredicted) {
    Decision decision;
    decision.iteration = 40;
    decision.observation.now = Duration::seconds(7);
    decision.observation.iteration = Duration::milliseconds(250);
    decision.observation.iterations = {Duration::milliseconds(200), Duration::milliseconds(300)};
    decision.observation.loss = Loss{{4, 5}, Duration::seconds(6)};
    decision.observation.unavailable_gpus = {4, 5};
    decision.observation.plan.gpu_of_rank = {0, 1};
    decision.observation.ranks.resize(2);
    decision.observation.ranks[1].measured.gpu = 1;
    decision.observation.ranks[1].measured.compute = Duration::milliseconds(200);
    decision.observation.groups.push_back({GroupMeasurement::Kind::kPipeline, 3, 2e10});
    decision.candidates = {{Candidate::Kind::kWaitForReplacement, decision.observation.plan, {}, "why"}};
    const scenarios::DecisionEvent alone = decision_event(decision);
    EXPECT_EQ(alone.time_ns, 7'000'000'000);
    EXPECT_EQ(alone.iteration, 40);
    EXPECT_EQ(alone.iteration_ns, 250'000'000);
    EXPECT_EQ(measurements_of(alone).iterations, decision.observation.iterations);
    EXPECT_THAT(alone.lost_gpus, ElementsAre(4, 5));
    EXPECT_EQ(alone.noticed_ns, 6'000'000'000);
    EXPECT_THAT(alone.unavailable_gpus, ElementsAre(4, 5));
    EXPECT_EQ(alone.plan, decision.observation.plan);
    EXPECT_FALSE(alone.chosen_plan) << "nothing changes";
    ASSERT_EQ(alone.candidates.size(), 1u);
    EXPECT_EQ(alone.candidates[0].kind, "wait-for-replacement");
    EXPECT_THAT(alone.measured.gpu, ElementsAre(0, 1));
    EXPECT_THAT(alone.measured.compute_ns, ElementsAre(0, 200'000'000));
    EXPECT_THAT(alone.measured.group_kind, ElementsAre(1));
    EXPECT_THAT(alone.measured.group_bytes_per_s, ElementsAre(2e10));

    Candidate restart = decision.candidates[0];
    restart.kind = Candidate::Kind::kRestart;
    restart.plan.gpu_of_rank = {2, 3};
    restart.predicted = {Duration::seconds(2), Duration::seconds(30), Duration::seconds(31),
                         scenarios::Bytes(5),  scenarios::Bytes(6),   Duration::seconds(32)};
    decision.candidates.push_back(restart);
    decision.chosen = {1, Action::By::kRule};
    const scenarios::DecisionEvent choice = decision_event(decision);
    EXPECT_EQ(choice.chosen, 1);
    EXPECT_EQ(choice.by, Action::By::kRule);
    ASSERT_TRUE(choice.chosen_plan);
    EXPECT_EQ(*choice.chosen_plan, restart.plan);
    EXPECT_EQ(choice.candidates[1].iteration_ns, 2'000'000'000);
    EXPECT_EQ(choice.candidates[1].pause_ns, 30'000'000'000);
    EXPECT_EQ(choice.candidates[1].restart_ns, 31'000'000'000);
    EXPECT_EQ(choice.candidates[1].way_back_ns, 32'000'000'000);
    EXPECT_EQ(choice.candidates[1].moved_bytes, 5);
    EXPECT_EQ(choice.candidates[1].memory_bytes, 6);
}

}  // namespace
}  // namespace headway::policies
