#include "policies/learning/online_learner.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "policies/learning/network.h"
#include "policies/learning/normaliser.h"
#include "policies/learning/rollout.h"
#include "policies/learning/scorer.h"
#include "scenarios/language/random.h"

namespace headway::policies {

namespace {

constexpr std::size_t kLatest = 256;  // decisions over which the distance from the original is taken

/// Exact divergence KL(a || b) of two distributions given by log-probabilities.
double divergence(std::span<const double> a, std::span<const double> b) {
    double sum = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i] < -100.0) continue;
        sum += scenarios::portable_exp(a[i]) * (a[i] - std::max(b[i], -100.0));
    }
    return std::max(0.0, sum);
}

/// Mean divergence of what `policy` would do from what `other` would, over recorded decisions.
double mean_divergence(Scorer& policy, Scorer& other, const std::deque<Features>& decisions) {
    double sum = 0.0;
    for (const Features& features : decisions) {
        policy.score(features);
        other.score(features);
        sum += divergence(other.log_probabilities(), policy.log_probabilities());
    }
    return decisions.empty() ? 0.0 : sum / static_cast<double>(decisions.size());
}

}  // namespace

struct OnlineLearner::Impl {
    OnlineOptions options;
    TrainedPolicy original;
    TrainedPolicy current;
    Scorer original_scorer;
    Scorer scorer;
    Network network;
    Adam adam;
    FeatureBuilder features;
    scenarios::RandomStream stream{0, "learning.online"};
    Duration healthy;
    Rollout rollout;
    std::deque<Features> latest;
    int updates = 0;
    int refused = 0;
    double distance = 0.0;

    Impl(const TrainedPolicy& trained, const OnlineOptions& o)
        : options(o),
          original(trained),
          current(trained),
          original_scorer(trained),
          scorer(trained),
          network(trained.shape) {}

    void learn();
    bool within_limits(const TrainedPolicy& candidate, double& from_original);
};

/// Whether the candidate is as near as it must be to the present policy and to the original.
bool OnlineLearner::Impl::within_limits(const TrainedPolicy& candidate, double& from_original) {
    Scorer moved(candidate);
    from_original = mean_divergence(moved, original_scorer, latest);
    return mean_divergence(moved, scorer, latest) <= options.step_kl && from_original <= options.total_kl;
}

void OnlineLearner::Impl::learn() {
    PpoOptions ppo = options.ppo;
    ppo.group_baseline = false;
    const Advantages estimate = estimate_advantages(rollout, ppo);
    const std::size_t judged = rollout.steps.size() - 1;  // the last one's outcome is still to come
    double mean = 0.0;
    for (std::size_t t = 0; t < judged; ++t) mean += estimate.advantage[t] / static_cast<double>(judged);
    double variance = 0.0;
    for (std::size_t t = 0; t < judged; ++t) {
        variance += (estimate.advantage[t] - mean) * (estimate.advantage[t] - mean) / static_cast<double>(judged);
    }
    const double deviation = std::sqrt(variance) + 1e-8;

    NetworkInput input;
    for (std::size_t t = 0; t < judged; ++t) append_decision(current, rollout.steps[t].features, input);
    NetworkOutput output;
    network.set_parameters(current.parameters);
    network.forward(input, output);
    std::vector<double> by_logits(input.rows(), 0.0), by_values(judged, 0.0);
    for (std::size_t t = 0; t < judged; ++t) {
        const std::size_t begin = input.first[t];
        const std::size_t count = input.first[t + 1] - begin;
        ppo_terms(std::span(output.logits).subspan(begin, count), output.values[t], rollout.steps[t],
                  (estimate.advantage[t] - mean) / deviation, estimate.returns[t], ppo,
                  std::span(by_logits).subspan(begin, count), by_values[t]);
    }
    std::vector<double> gradient(current.parameters.size(), 0.0);
    network.backward(by_logits, by_values, gradient);
    double square = 0.0;
    for (double& g : gradient) {
        g /= static_cast<double>(judged);
        square += g * g;
    }
    const double norm = std::sqrt(square);
    if (norm > ppo.gradient_norm) {
        for (double& g : gradient) g *= ppo.gradient_norm / norm;
    }
    TrainedPolicy moved = current;
    adam.step(moved.parameters, gradient, options.learning_rate);

    // Within the limits, or half of the way, or a quarter; otherwise not at all.
    double from_original = 0.0;
    for (int tries = 0; tries < 3; ++tries) {
        if (within_limits(moved, from_original)) {
            current = moved;
            scorer = Scorer(current);
            distance = from_original;
            ++updates;
            return;
        }
        for (std::size_t i = 0; i < moved.parameters.size(); ++i) {
            moved.parameters[i] = 0.5 * (moved.parameters[i] + current.parameters[i]);
        }
    }
    ++refused;
}

OnlineLearner::OnlineLearner(const TrainedPolicy& trained, const OnlineOptions& options)
    : impl_(std::make_unique<Impl>(trained, options)) {}

OnlineLearner::~OnlineLearner() = default;

std::string_view OnlineLearner::name() const {
    return "learned-online";
}

void OnlineLearner::start_episode(const ClusterFacts& facts, std::uint64_t seed) {
    impl_->features.start_episode(facts);
    impl_->stream = scenarios::RandomStream(seed, "learning.online");
    impl_->healthy = facts.healthy_iteration;
    impl_->rollout = Rollout();
}

Action OnlineLearner::decide(const Observation& observation, const std::vector<Candidate>& candidates) {
    Impl& learner = *impl_;
    Step step;
    step.features = learner.features.build(observation, candidates);
    learner.scorer.score(step.features);
    novelty_ = novelty_of(learner.current, step.features.global);
    std::size_t chosen = learner.scorer.best();
    if (learner.options.explore > 0.0 && learner.stream.uniform() < learner.options.explore) {
        double left = learner.stream.uniform();
        for (std::size_t i = 0; i < candidates.size(); ++i) {
            left -= scenarios::portable_exp(std::max(learner.scorer.log_probabilities()[i], -700.0));
            if (left < 0.0) {
                chosen = i;
                break;
            }
        }
    }
    step.action = static_cast<int>(chosen);
    step.log_probability = learner.scorer.log_probabilities()[chosen];
    step.value = learner.scorer.value();
    step.time = learner.rollout.steps.empty() ? 0.0 : learner.rollout.steps.back().time + 1.0;
    learner.latest.push_back(step.features);
    if (learner.latest.size() > kLatest) learner.latest.pop_front();
    learner.rollout.steps.push_back(std::move(step));
    return {chosen};
}

bool OnlineLearner::decided(const Decision& decision) {
    if (impl_->rollout.steps.empty()) return true;
    Step& step = impl_->rollout.steps.back();
    if (decision.chosen.candidate < step.features.count()) {
        step.action = static_cast<int>(decision.chosen.candidate);
        // A guard's choice is judged as if the policy had made it: its probability is the policy's own.
        impl_->scorer.score(step.features);
        step.log_probability = impl_->scorer.log_probabilities()[decision.chosen.candidate];
    }
    return true;
}

void OnlineLearner::earned(const Interval& interval) {
    Impl& learner = *impl_;
    if (learner.rollout.steps.empty()) return;
    Step& step = learner.rollout.steps.back();
    step.reward = reward(interval, learner.healthy);
    const double healthy_s = learner.healthy.s() * static_cast<double>(std::max<std::int64_t>(1, interval.iterations));
    step.weight = healthy_s > 0.0 ? std::min(interval.wall.s() / healthy_s, 1000.0) : 1.0;
    // The newest step serves as the successor of those before it.
    if (static_cast<int>(learner.rollout.steps.size()) > learner.options.decisions_per_update) {
        learner.learn();
        Step newest = std::move(learner.rollout.steps.back());
        learner.rollout = Rollout();
        learner.rollout.steps.push_back(std::move(newest));
    }
}

const TrainedPolicy& OnlineLearner::policy() const {
    return impl_->current;
}

const TrainedPolicy& OnlineLearner::original() const {
    return impl_->original;
}

void OnlineLearner::revert() {
    impl_->current = impl_->original;
    impl_->scorer = Scorer(impl_->original);
    impl_->adam = Adam();
    impl_->distance = 0.0;
}

int OnlineLearner::updates() const {
    return impl_->updates;
}

int OnlineLearner::refused() const {
    return impl_->refused;
}

double OnlineLearner::distance() const {
    return impl_->distance;
}

}  // namespace headway::policies
