#include "policies/learning/rollout.h"

#include <stdexcept>

#include "policies/learning/byte_stream.h"
#include "policies/learning/scorer.h"

namespace headway::policies {

namespace {

constexpr std::uint32_t kRolloutFormat = 1;

/// Fills a rollout while an episode runs: the deciding policy adds steps, the episode's sink what became of them.
class RolloutRecorder final : public EpisodeSink {
  public:
    RolloutRecorder(const ClusterFacts& facts, const RolloutOptions& options)
        : healthy_(facts.healthy_iteration), interval_(options.episode.decision_interval) {
        rollout_.group = options.group;
        rollout_.scenario = options.scenario;
    }

    /// Time of a decision in healthy intervals.
    double intervals(Duration time) const { return healthy_ > Duration() ? time / (healthy_ * interval_) : 0.0; }
    void add(Step step) { rollout_.steps.push_back(std::move(step)); }

    bool decided(const Decision& decision) override {
        rollout_.steps.back().time = intervals(decision.observation.now);
        return true;
    }
    void earned(const Interval& interval) override {
        Step& step = rollout_.steps.back();
        step.reward = reward(interval, healthy_);
        step.weight = intervals(interval.wall);
        if (interval.last) rollout_.terminated = !interval.truncated;
    }

    Rollout finish(const EpisodeSummary& summary) {
        rollout_.switches = summary.switches;
        if (summary.wall > Duration()) {
            rollout_.goodput = static_cast<double>(summary.iterations) * (healthy_ / summary.wall);
        }
        return std::move(rollout_);
    }

  private:
    Duration healthy_;
    int interval_;
    Rollout rollout_;
};

/// Draws from the network's probabilities.
class SamplingPolicy final : public Policy {
  public:
    SamplingPolicy(const TrainedPolicy& trained, bool sample, scenarios::RandomStream& stream,
                   RolloutRecorder& recorder)
        : scorer_(trained), sample_(sample), stream_(stream), recorder_(recorder) {}

    std::string_view name() const override { return "learning"; }
    void start_episode(const ClusterFacts& facts, std::uint64_t) override { features_.start_episode(facts); }

    Action decide(const Observation& observation, const std::vector<Candidate>& candidates) override {
        Step step;
        step.features = features_.build(observation, candidates);
        scorer_.score(step.features);
        const std::span<const double> log_probabilities = scorer_.log_probabilities();
        std::size_t chosen = sample_ ? draw(log_probabilities) : scorer_.best();
        step.action = static_cast<int>(chosen);
        step.log_probability = log_probabilities[chosen];
        step.value = scorer_.value();
        recorder_.add(std::move(step));
        return {chosen};
    }

  private:
    std::size_t draw(std::span<const double> log_probabilities) {
        double left = stream_.uniform();
        std::size_t last = 0;
        for (std::size_t i = 0; i < log_probabilities.size(); ++i) {
            if (log_probabilities[i] < -700.0) continue;
            last = i;
            const double probability = scenarios::portable_exp(log_probabilities[i]);
            if (left < probability) return i;
            left -= probability;
        }
        return last;
    }

    Scorer scorer_;
    FeatureBuilder features_;
    bool sample_;
    scenarios::RandomStream& stream_;
    RolloutRecorder& recorder_;
};

/// Lets a teacher decide and writes down what it was shown.
class TaughtPolicy final : public Policy {
  public:
    TaughtPolicy(Policy& teacher, RolloutRecorder& recorder) : teacher_(teacher), recorder_(recorder) {}

    std::string_view name() const override { return teacher_.name(); }
    void start_episode(const ClusterFacts& facts, std::uint64_t seed) override {
        features_.start_episode(facts);
        teacher_.start_episode(facts, seed);
    }
    Action decide(const Observation& observation, const std::vector<Candidate>& candidates) override {
        Step step;
        step.features = features_.build(observation, candidates);
        const Action chosen = teacher_.decide(observation, candidates);
        step.action = static_cast<int>(chosen.candidate);
        // Plans that only the teacher asked for are not offered to who learns from it.
        for (const Candidate& candidate : candidates) {
            step.allowed.push_back(candidate.kind == Candidate::Kind::kFurther ? 0 : 1);
        }
        recorder_.add(std::move(step));
        return chosen;
    }
    std::span<const scenarios::Plan> further_plans() const override { return teacher_.further_plans(); }

  private:
    Policy& teacher_;
    FeatureBuilder features_;
    RolloutRecorder& recorder_;
};

}  // namespace

bool Rollout::operator==(const Rollout& other) const {
    return rollout_bytes(*this) == rollout_bytes(other);
}

Rollout collect(TrainingCluster& cluster, CandidateGenerator& generator, const TrainedPolicy& policy,
                const RolloutOptions& options, scenarios::RandomStream& stream) {
    RolloutRecorder recorder(cluster.facts(), options);
    SamplingPolicy sampling(policy, options.sample, stream, recorder);
    return recorder.finish(run_episode(cluster, generator, sampling, options.episode, recorder));
}

Rollout demonstrate(TrainingCluster& cluster, CandidateGenerator& generator, Policy& teacher,
                    const RolloutOptions& options) {
    RolloutRecorder recorder(cluster.facts(), options);
    TaughtPolicy taught(teacher, recorder);
    return recorder.finish(run_episode(cluster, generator, taught, options.episode, recorder));
}

std::string rollout_bytes(const Rollout& rollout) {
    ByteWriter out;
    out.number(kRolloutFormat);
    out.number(rollout.group);
    out.number(rollout.scenario);
    out.number<std::uint8_t>(rollout.terminated ? 1 : 0);
    out.number(rollout.goodput);
    out.number(rollout.switches);
    out.number<std::uint64_t>(rollout.steps.size());
    for (const Step& step : rollout.steps) {
        out.numbers(step.features.global);
        out.numbers(step.features.candidates);
        out.numbers(step.features.gain);
        out.numbers(step.features.cost);
        out.numbers(step.allowed);
        out.number<std::int32_t>(step.action);
        for (const double value : {step.log_probability, step.value, step.reward, step.weight, step.time}) {
            out.number(value);
        }
    }
    return out.take();
}

Rollout rollout_from_bytes(std::string_view bytes) {
    ByteReader in(bytes);
    if (in.number<std::uint32_t>() != kRolloutFormat) throw std::runtime_error("rollout of another format");
    Rollout rollout;
    rollout.group = in.number<std::int64_t>();
    rollout.scenario = in.number<std::int64_t>();
    rollout.terminated = in.number<std::uint8_t>() != 0;
    rollout.goodput = in.number<double>();
    rollout.switches = in.number<std::int64_t>();
    const auto count = in.number<std::uint64_t>();
    for (std::uint64_t i = 0; i < count; ++i) {
        Step step;
        step.features.global = in.numbers<float>();
        step.features.candidates = in.numbers<float>();
        step.features.gain = in.numbers<float>();
        step.features.cost = in.numbers<float>();
        step.allowed = in.numbers<std::uint8_t>();
        step.action = in.number<std::int32_t>();
        for (double* value : {&step.log_probability, &step.value, &step.reward, &step.weight, &step.time}) {
            *value = in.number<double>();
        }
        rollout.steps.push_back(std::move(step));
    }
    if (!in.at_end()) throw std::runtime_error("rollout with bytes after its end");
    return rollout;
}

}  // namespace headway::policies
