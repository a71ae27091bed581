#include "policies/learning/ppo.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "policies/learning/network.h"
#include "scenarios/language/random.h"

namespace headway::policies {

namespace {

using scenarios::portable_exp;
using scenarios::portable_log;

double discount_over(double per_interval, double weight) {
    if (per_interval <= 0.0) return 0.0;
    return portable_exp(std::max(portable_log(per_interval) * weight, -700.0));
}

/// Steps whose action has an advantage: all, but for the last of an episode that was cut off.
std::size_t judged_steps(const Rollout& rollout) {
    if (rollout.steps.empty()) return 0;
    return rollout.steps.size() - (rollout.terminated ? 0 : 1);
}

/// A rollout's advantage at some time, between its steps by straight lines.
double advantage_at(const Rollout& rollout, const std::vector<double>& advantage, double time) {
    const std::size_t count = judged_steps(rollout);
    const auto begin = rollout.steps.begin();
    const auto end = begin + static_cast<std::ptrdiff_t>(count);
    const auto after = std::lower_bound(begin, end, time, [](const Step& step, double t) { return step.time < t; });
    if (after == end) return advantage[count - 1];
    const auto index = static_cast<std::size_t>(after - begin);
    if (index == 0) return advantage[0];
    const double from = rollout.steps[index - 1].time;
    const double width = after->time - from;
    const double share = width > 0.0 ? (time - from) / width : 1.0;
    return advantage[index - 1] + share * (advantage[index] - advantage[index - 1]);
}

}  // namespace

double step_reward(const Step& step, const PpoOptions& options) {
    return (1.0 - options.discount) * step.weight * (step.reward - 1.0);
}

Advantages estimate_advantages(const Rollout& rollout, const PpoOptions& options) {
    const std::vector<Step>& steps = rollout.steps;
    Advantages result;
    result.advantage.assign(steps.size(), 0.0);
    result.returns.assign(steps.size(), 0.0);
    if (steps.empty()) return result;
    const std::size_t judged = judged_steps(rollout);
    double next_value = 0.0;
    if (!rollout.terminated) {
        next_value = steps.back().value;
        result.returns.back() = next_value;
    }
    double next_advantage = 0.0;
    for (std::size_t t = judged; t-- > 0;) {
        const Step& step = steps[t];
        const double discount = discount_over(options.discount, step.weight);
        const double delta = step_reward(step, options) + discount * next_value - step.value;
        next_advantage = delta + discount * discount_over(options.lambda, step.weight) * next_advantage;
        next_value = step.value;
        result.advantage[t] = next_advantage;
        result.returns[t] = next_advantage + step.value;
    }
    return result;
}

std::vector<Advantages> estimate_advantages(std::span<const Rollout> rollouts, const PpoOptions& options) {
    std::vector<Advantages> estimates;
    estimates.reserve(rollouts.size());
    for (const Rollout& rollout : rollouts) estimates.push_back(estimate_advantages(rollout, options));
    if (!options.group_baseline) return estimates;

    std::map<std::int64_t, std::vector<std::size_t>> members;
    for (std::size_t i = 0; i < rollouts.size(); ++i) {
        if (judged_steps(rollouts[i]) > 0) members[rollouts[i].group].push_back(i);
    }
    std::vector<std::vector<double>> baseline(rollouts.size());
    for (const auto& [group, episodes] : members) {
        if (episodes.size() < 2) continue;
        for (const std::size_t i : episodes) {
            baseline[i].resize(judged_steps(rollouts[i]));
            for (std::size_t t = 0; t < baseline[i].size(); ++t) {
                double sum = 0.0;
                for (const std::size_t j : episodes) {
                    if (j == i) continue;
                    sum += advantage_at(rollouts[j], estimates[j].advantage, rollouts[i].steps[t].time);
                }
                baseline[i][t] = sum / static_cast<double>(episodes.size() - 1);
            }
        }
    }
    for (std::size_t i = 0; i < rollouts.size(); ++i) {
        for (std::size_t t = 0; t < baseline[i].size(); ++t) estimates[i].advantage[t] -= baseline[i][t];
    }
    return estimates;
}

void Adam::step(std::span<double> parameters, std::span<const double> gradient, double rate) {
    constexpr double kFirst = 0.9;
    constexpr double kSecond = 0.999;
    constexpr double kEpsilon = 1e-8;
    if (gradient.size() != parameters.size()) throw std::invalid_argument("Adam: gradient of another size");
    first.resize(parameters.size(), 0.0);
    second.resize(parameters.size(), 0.0);
    ++steps;
    const auto power = [&](double base) { return portable_exp(std::max(portable_log(base) * steps, -700.0)); };
    const double first_scale = 1.0 / (1.0 - power(kFirst));
    const double second_scale = 1.0 / (1.0 - power(kSecond));
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        first[i] = kFirst * first[i] + (1.0 - kFirst) * gradient[i];
        second[i] = kSecond * second[i] + (1.0 - kSecond) * gradient[i] * gradient[i];
        parameters[i] -= rate * (first[i] * first_scale) / (std::sqrt(second[i] * second_scale) + kEpsilon);
    }
}

PpoTerms ppo_terms(std::span<const double> logits, double value, const Step& step, double advantage, double target,
                   const PpoOptions& options, std::span<double> by_logits, double& by_value) {
    std::vector<double> log_probabilities(logits.size());
    log_softmax(logits, step.allowed, log_probabilities);
    const auto action = static_cast<std::size_t>(step.action);
    const double log_ratio = std::clamp(log_probabilities[action] - step.log_probability, -50.0, 50.0);
    const double ratio = portable_exp(log_ratio);

    PpoTerms terms;
    const double clipped_ratio = std::clamp(ratio, 1.0 - options.clip, 1.0 + options.clip);
    terms.policy_loss = -std::min(ratio * advantage, clipped_ratio * advantage);
    terms.clipped = ratio != clipped_ratio ? 1.0 : 0.0;
    terms.kl = ratio - 1.0 - log_ratio;
    terms.value_loss = 0.5 * (value - target) * (value - target);
    by_value += options.value_loss * (value - target);

    const bool flat = clipped_ratio * advantage < ratio * advantage;
    const double by_log_probability = flat ? 0.0 : -ratio * advantage;
    for (std::size_t i = 0; i < logits.size(); ++i) {
        if (std::isinf(log_probabilities[i])) continue;
        terms.entropy -= portable_exp(std::max(log_probabilities[i], -700.0)) * log_probabilities[i];
    }
    for (std::size_t i = 0; i < logits.size(); ++i) {
        if (std::isinf(log_probabilities[i])) continue;
        const double probability = portable_exp(std::max(log_probabilities[i], -700.0));
        by_logits[i] += by_log_probability * ((i == action ? 1.0 : 0.0) - probability);
        by_logits[i] += options.entropy * probability * (log_probabilities[i] + terms.entropy);
    }
    return terms;
}

double imitation_terms(std::span<const double> logits, const Step& step, std::span<double> by_logits) {
    std::vector<double> log_probabilities(logits.size());
    log_softmax(logits, step.allowed, log_probabilities);
    const auto action = static_cast<std::size_t>(step.action);
    for (std::size_t i = 0; i < logits.size(); ++i) {
        if (std::isinf(log_probabilities[i])) continue;
        by_logits[i] += portable_exp(std::max(log_probabilities[i], -700.0)) - (i == action ? 1.0 : 0.0);
    }
    return -log_probabilities[action];
}

}  // namespace headway::policies
