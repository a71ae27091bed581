#pragma once

#include <functional>
#include <vector>

#include "policies/learning/rollout.h"
#include "policies/learning/scorer.h"
#include "policies/learning/trainer.h"

namespace headway::policies {

/// A small decision problem whose best policy is known.
struct ToyEpisode {
    virtual ~ToyEpisode() = default;
    virtual Features features() const = 0;
    /// Takes the action; fills reward and weight of the step. False when the episode is over (job done).
    virtual bool act(int action, Step& step) = 0;
};

/// One episode of at most `length` decisions under the policy's probabilities.
inline Rollout toy_rollout(const TrainedPolicy& policy, ToyEpisode& episode, int length, std::int64_t group,
                           scenarios::RandomStream& stream) {
    Scorer scorer(policy);
    Rollout rollout;
    rollout.group = group;
    double time = 0.0;
    for (int i = 0; i < length; ++i) {
        Step step;
        step.features = episode.features();
        scorer.score(step.features);
        double left = stream.uniform();
        std::size_t action = 0;
        while (action + 1 < step.features.count()) {
            left -= scenarios::portable_exp(std::max(scorer.log_probabilities()[action], -700.0));
            if (left < 0.0) break;
            ++action;
        }
        step.action = static_cast<int>(action);
        step.log_probability = scorer.log_probabilities()[action];
        step.value = scorer.value();
        step.time = time;
        const bool goes_on = episode.act(step.action, step);
        time += step.weight;
        rollout.steps.push_back(std::move(step));
        if (!goes_on) {
            rollout.terminated = true;
            break;
        }
    }
    return rollout;
}

inline TrainerOptions toy_options(int global, int candidate, std::int64_t updates) {
    TrainerOptions options;
    options.shape = {global, candidate, 12, 8, 12, 8, 12};
    options.updates = updates;
    options.seed = 11;
    options.ppo.learning_rate = 5e-3;
    options.ppo.minibatches = 4;
    options.ppo.target_kl = 0.0;
    return options;
}

}  // namespace headway::policies
