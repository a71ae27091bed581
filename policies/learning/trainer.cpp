#include "policies/learning/trainer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "policies/learning/checkpoint.h"
#include "policies/learning/feature_histogram.h"
#include "policies/learning/network.h"
#include "policies/learning/normaliser.h"

namespace headway::policies {

namespace {

constexpr double kNormaliserDecisions = 200'000;  // then it stands still, so that the network's inputs do

/// A decision to learn from.
struct Sample {
    const Step* step;
    double advantage;
    double target;
};

const Features& features_of(const Sample& sample) {
    return sample.step->features;
}
const Features& features_of(const Comparison& comparison) {
    return comparison.features;
}

/// Whether the step's action is one that could be chosen (a teacher's may not be).
bool action_allowed(const Step& step) {
    return step.allowed.empty() || step.allowed[static_cast<std::size_t>(step.action)] != 0;
}

std::vector<Sample> samples_of(std::span<const Rollout> rollouts, std::span<const Advantages> estimates) {
    std::vector<Sample> samples;
    for (std::size_t i = 0; i < rollouts.size(); ++i) {
        const std::vector<Step>& steps = rollouts[i].steps;
        const std::size_t judged = steps.empty() ? 0 : steps.size() - (rollouts[i].terminated ? 0 : 1);
        for (std::size_t t = 0; t < judged; ++t) {
            if (!action_allowed(steps[t])) continue;
            samples.push_back({&steps[t], estimates[i].advantage[t], estimates[i].returns[t]});
        }
    }
    return samples;
}

int best_allowed(std::span<const double> logits, std::span<const std::uint8_t> allowed) {
    int best = -1;
    for (std::size_t i = 0; i < logits.size(); ++i) {
        const bool open = allowed.empty() || allowed[i] != 0;
        if (open && (best < 0 || logits[i] > logits[static_cast<std::size_t>(best)])) best = static_cast<int>(i);
    }
    return best;
}

void shuffle_samples(std::vector<std::size_t>& order, scenarios::RandomStream stream) {
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = order.size(); i > 1; --i) {
        std::swap(order[i - 1], order[static_cast<std::size_t>(stream.below(static_cast<std::int64_t>(i)))]);
    }
}

}  // namespace

struct Trainer::Impl {
    TrainerState state;
    Reduction& reduction;
    Network network;
    NetworkInput input;
    NetworkOutput output;
    std::vector<double> by_logits, by_values;
    std::vector<double> message;  ///< gradient, then figures: one sum over the processes per minibatch

    Impl(TrainerState s, Reduction& r) : state(std::move(s)), reduction(r), network(state.policy.shape) {}

    std::uint64_t stream_index(std::int64_t round) const {
        return static_cast<std::uint64_t>(round) * 4096u + static_cast<std::uint64_t>(reduction.rank());
    }

    /// Forward and backward over `picked`, summed over all processes, then one step of Adam. `terms` of a decision adds
    /// to its derivatives and to the figures. Returns the norm of the mean gradient; 0 where no process had any.
    template <class Example, class Terms>
    double learn(std::span<const Example> samples, std::span<const std::size_t> picked, double rate,
                 std::span<double> figures, const Terms& terms) {
        const std::size_t parameters = state.policy.parameters.size();
        message.assign(parameters + figures.size() + 1, 0.0);
        const std::span<double> gradient = std::span(message).first(parameters);
        const std::span<double> sums = std::span(message).subspan(parameters, figures.size());
        if (!picked.empty()) {
            input.clear();
            for (const std::size_t index : picked) append_decision(state.policy, features_of(samples[index]), input);
            network.forward(input, output);
            by_logits.assign(input.rows(), 0.0);
            by_values.assign(input.decisions(), 0.0);
            for (std::size_t d = 0; d < picked.size(); ++d) {
                const std::size_t begin = input.first[d];
                const std::size_t count = input.first[d + 1] - begin;
                terms(samples[picked[d]], std::span(output.logits).subspan(begin, count), output.values[d],
                      std::span(by_logits).subspan(begin, count), by_values[d], sums);
            }
            network.backward(by_logits, by_values, gradient);
        }
        message.back() = static_cast<double>(picked.size());
        reduction.sum(message);
        const double count = message.back();
        for (std::size_t i = 0; i < figures.size(); ++i) figures[i] += sums[i];
        if (count <= 0.0) return 0.0;
        double square = 0.0;
        for (double& g : gradient) {
            g /= count;
            square += g * g;
        }
        const double norm = std::sqrt(square);
        const double most = state.options.ppo.gradient_norm;
        if (most > 0.0 && norm > most) {
            for (double& g : gradient) g *= most / norm;
        }
        state.adam.step(state.policy.parameters, gradient, rate);
        network.set_parameters(state.policy.parameters);
        return norm;
    }

    /// Takes the decisions' features into normalisers and ranges.
    void take_statistics(std::span<const Features* const> decisions) {
        TrainedPolicy& policy = state.policy;
        std::vector<double> global_sums(1 + 2 * policy.global_normaliser.mean.size(), 0.0);
        std::vector<double> candidate_sums(1 + 2 * policy.candidate_normaliser.mean.size(), 0.0);
        FeatureHistogram seen(policy.global_normaliser.mean.size());
        for (const Features* features : decisions) {
            add_sums(policy.global_normaliser, features->global, global_sums);
            add_sums(policy.candidate_normaliser, features->candidates, candidate_sums);
            seen.add(features->global);
        }
        reduction.sum(global_sums);
        reduction.sum(candidate_sums);
        reduction.sum(seen.counts());
        policy.provenance.decisions += std::llround(global_sums[0]);
        if (policy.global_normaliser.count < kNormaliserDecisions) {
            merge(policy.global_normaliser, global_sums);
            merge(policy.candidate_normaliser, candidate_sums);
        }
        state.histogram.merge(seen);
        policy.global_ranges = state.histogram.ranges(1e-4);

        NoveltyHistogram novelty;
        for (const Features* features : decisions) novelty.add(raw_novelty(policy.global_ranges, features->global));
        reduction.sum(novelty.counts());
        state.novelty.merge(novelty);
        policy.novelty_limit = state.novelty.quantile(0.999);
    }
    void take_statistics(std::span<const Rollout> rollouts) {
        std::vector<const Features*> decisions;
        for (const Rollout& rollout : rollouts) {
            for (const Step& step : rollout.steps) decisions.push_back(&step.features);
        }
        take_statistics(decisions);
    }
};

Trainer::Trainer(const TrainerOptions& options, Reduction& reduction) {
    TrainerState state;
    state.options = options;
    state.policy.shape = options.shape;
    scenarios::RandomStream stream(options.seed, "learning.initial_parameters");
    state.policy.parameters = Network::initial_parameters(options.shape, stream);
    state.policy.global_normaliser = empty_normaliser(static_cast<std::size_t>(options.shape.global_features));
    state.policy.candidate_normaliser = empty_normaliser(static_cast<std::size_t>(options.shape.candidate_features));
    state.policy.provenance.seed = options.seed;
    state.policy.provenance.curriculum = options.curriculum;
    state.histogram = FeatureHistogram(state.policy.global_normaliser.mean.size());
    impl_ = std::make_unique<Impl>(std::move(state), reduction);
    impl_->network.set_parameters(impl_->state.policy.parameters);
}

Trainer::Trainer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;

const TrainedPolicy& Trainer::policy() const {
    return impl_->state.policy;
}

std::int64_t Trainer::updates_done() const {
    return impl_->state.policy.provenance.updates;
}

ImitationReport Trainer::imitate(std::span<const Rollout> demonstrations, int epochs) {
    Impl& trainer = *impl_;
    const TrainerOptions& options = trainer.state.options;
    trainer.take_statistics(demonstrations);
    PpoOptions measured = options.ppo;  // what was earned, with no value function to lean on
    measured.lambda = 1.0;
    measured.group_baseline = false;
    const std::vector<Advantages> estimates = estimate_advantages(demonstrations, measured);
    const std::vector<Sample> samples = samples_of(demonstrations, estimates);
    std::array<double, 1> total = {static_cast<double>(samples.size())};
    trainer.reduction.sum(total);

    ImitationReport report;
    report.decisions = std::llround(total[0]);
    const auto minibatches = std::max<std::size_t>(
        1, static_cast<std::size_t>(std::ceil(total[0] / std::max(1, options.imitation_minibatch))));
    std::vector<std::size_t> order(samples.size());
    for (int epoch = 0; epoch < epochs; ++epoch) {
        std::int64_t& done = trainer.state.policy.provenance.imitation_epochs;
        shuffle_samples(order, {options.seed, "learning.imitation_order", trainer.stream_index(done)});
        ++done;
        const double rate = options.imitation_rate * (1.0 - 0.9 * epoch / epochs);
        std::array<double, 2> figures{};
        for (std::size_t m = 0; m < minibatches; ++m) {
            const std::size_t begin = order.size() * m / minibatches;
            const std::size_t end = order.size() * (m + 1) / minibatches;
            trainer.learn(std::span<const Sample>(samples), std::span(order).subspan(begin, end - begin), rate, figures,
                          [&](const Sample& sample, std::span<const double> logits, double value,
                              std::span<double> by_logits, double& by_value, std::span<double> sums) {
                              sums[0] += imitation_terms(logits, *sample.step, by_logits);
                              sums[1] += best_allowed(logits, sample.step->allowed) == sample.step->action ? 1.0 : 0.0;
                              by_value += options.ppo.value_loss * (value - sample.target);
                          });
        }
        if (total[0] > 0.0) {
            report.loss = figures[0] / total[0];
            report.agreement = figures[1] / total[0];
        }
    }
    return report;
}

ComparisonReport Trainer::learn_from(std::span<const Comparison> comparisons, int epochs, double rate) {
    Impl& trainer = *impl_;
    std::vector<const Features*> decisions;
    for (const Comparison& comparison : comparisons) decisions.push_back(&comparison.features);
    trainer.take_statistics(decisions);
    std::array<double, 2> total = {static_cast<double>(comparisons.size()), 0.0};
    for (const Comparison& comparison : comparisons) total[1] += static_cast<double>(comparison.tried.size());
    trainer.reduction.sum(total);

    ComparisonReport report;
    report.decisions = std::llround(total[0]);
    report.comparisons = std::llround(total[1]);
    const int minibatch = std::max(1, trainer.state.options.imitation_minibatch);
    const auto minibatches = std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(total[0] / minibatch)));
    std::vector<std::size_t> order(comparisons.size());
    for (int epoch = 0; epoch < epochs; ++epoch) {
        std::int64_t& done = trainer.state.policy.provenance.imitation_epochs;
        shuffle_samples(order, {trainer.state.options.seed, "learning.comparison_order", trainer.stream_index(done)});
        ++done;
        std::array<double, 3> figures{};
        for (std::size_t m = 0; m < minibatches; ++m) {
            const std::size_t begin = order.size() * m / minibatches;
            const std::size_t end = order.size() * (m + 1) / minibatches;
            trainer.learn(comparisons, std::span(order).subspan(begin, end - begin), rate, figures,
                          [&](const Comparison& comparison, std::span<const double> logits, double /*value*/,
                              std::span<double> by_logits, double& /*by_value*/, std::span<double> sums) {
                              const ComparisonTerms terms = comparison_terms(logits, comparison, by_logits);
                              sums[0] += terms.loss;
                              sums[1] += terms.most;
                              sums[2] += terms.reached;
                          });
        }
        report.loss = figures[0] / std::max(1.0, total[0]);
        report.gain = figures[1] / std::max(1.0, total[0]);
        report.reached = figures[1] > 0.0 ? figures[2] / figures[1] : 0.0;
    }
    return report;
}

UpdateReport Trainer::update(std::span<const Rollout> rollouts) {
    Impl& trainer = *impl_;
    const TrainerOptions& options = trainer.state.options;
    Provenance& provenance = trainer.state.policy.provenance;
    const std::vector<Advantages> estimates = estimate_advantages(rollouts, options.ppo);
    std::vector<Sample> samples = samples_of(rollouts, estimates);

    // count, sums of advantages, of their squares, of returns, of errors; then episodes, goodput, switches
    std::array<double, 10> sums{};
    for (const Sample& sample : samples) {
        const double error = sample.target - sample.step->value;
        sums[0] += 1.0;
        sums[1] += sample.advantage;
        sums[2] += sample.advantage * sample.advantage;
        sums[3] += sample.target;
        sums[4] += sample.target * sample.target;
        sums[5] += error;
        sums[6] += error * error;
    }
    for (const Rollout& rollout : rollouts) {
        sums[7] += 1.0;
        sums[8] += rollout.goodput;
        sums[9] += static_cast<double>(rollout.switches);
    }
    trainer.reduction.sum(sums);
    const double count = std::max(sums[0], 1.0);
    const auto variance = [&](double sum, double squares) {
        return std::max(0.0, squares / count - (sum / count) * (sum / count));
    };
    const double mean = sums[1] / count;
    const double deviation = std::sqrt(variance(sums[1], sums[2]));
    for (Sample& sample : samples) sample.advantage = (sample.advantage - mean) / (deviation + 1e-8);

    UpdateReport report;
    report.episodes = std::llround(sums[7]);
    report.decisions = std::llround(sums[0]);
    report.goodput = sums[8] / std::max(sums[7], 1.0);
    report.switches = sums[9] / std::max(sums[7], 1.0);
    const double spread = variance(sums[3], sums[4]);
    report.explained_variance = spread > 0.0 ? 1.0 - variance(sums[5], sums[6]) / spread : 0.0;
    const double progress = std::min(
        1.0, static_cast<double>(provenance.updates) / static_cast<double>(std::max<std::int64_t>(1, options.updates)));
    report.learning_rate = options.ppo.learning_rate * (1.0 - 0.95 * progress);

    const auto minibatches = static_cast<std::size_t>(std::max(1, options.ppo.minibatches));
    std::vector<std::size_t> order(samples.size());
    int steps = 0;
    double norms = 0.0;
    while (report.epochs < options.ppo.epochs && sums[0] > 0.0) {
        shuffle_samples(order, {options.seed, "learning.update_order",
                                trainer.stream_index(provenance.updates * 64 + report.epochs)});
        ++report.epochs;
        std::array<double, 5> figures{};
        for (std::size_t m = 0; m < minibatches; ++m) {
            const std::size_t begin = order.size() * m / minibatches;
            const std::size_t end = order.size() * (m + 1) / minibatches;
            norms += trainer.learn(std::span<const Sample>(samples), std::span(order).subspan(begin, end - begin),
                                   report.learning_rate, figures,
                                   [&](const Sample& sample, std::span<const double> logits, double value,
                                       std::span<double> by_logits, double& by_value, std::span<double> into) {
                                       const PpoTerms terms =
                                           ppo_terms(logits, value, *sample.step, sample.advantage, sample.target,
                                                     options.ppo, by_logits, by_value);
                                       into[0] += terms.policy_loss;
                                       into[1] += terms.value_loss;
                                       into[2] += terms.entropy;
                                       into[3] += terms.kl;
                                       into[4] += terms.clipped;
                                   });
            ++steps;
        }
        report.policy_loss = figures[0] / count;
        report.value_loss = figures[1] / count;
        report.entropy = figures[2] / count;
        report.kl = figures[3] / count;
        report.clip_fraction = figures[4] / count;
        if (options.ppo.target_kl > 0.0 && report.kl > options.ppo.target_kl) break;
    }
    report.gradient_norm = steps > 0 ? norms / steps : 0.0;
    trainer.take_statistics(rollouts);
    report.update = ++provenance.updates;
    return report;
}

std::string Trainer::checkpoint() const {
    return checkpoint_bytes(impl_->state);
}

Trainer Trainer::resume(std::string_view checkpoint, const std::string& name, Reduction& reduction) {
    auto impl = std::make_unique<Impl>(state_from_checkpoint(checkpoint, name), reduction);
    impl->network.set_parameters(impl->state.policy.parameters);
    return Trainer(std::move(impl));
}

}  // namespace headway::policies
