#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policies/learning/rollout.h"

namespace headway::policies {

/// Proximal policy optimisation (Schulman et al. 2017) with the details of Huang et al., "The 37 implementation details
/// of PPO" (2022): advantage normalisation, clipped objective, entropy bonus, global gradient clipping, annealed rate,
/// orthogonal layers; no clipping of the value loss.
struct PpoOptions {
    double learning_rate = 3e-3;  ///< at the first update; falls linearly to a twentieth at the last
    double discount = 0.99;       ///< per healthy decision interval of wall time
    double lambda = 0.95;         ///< of the generalised advantage estimate (Schulman et al. 2016), likewise
    double clip = 0.2;
    double entropy = 0.005;
    double value_loss = 1.0;
    double gradient_norm = 0.5;
    int epochs = 4;
    int minibatches = 8;
    double target_kl = 0.03;  ///< no further epoch once the policy moved this far; 0: no limit
    bool group_baseline = true;
    bool operator==(const PpoOptions&) const = default;
};

/// What a step's action was worth, per step of a rollout.
struct Advantages {
    std::vector<double> advantage;  ///< what is reinforced: as estimated, less the group's baseline
    std::vector<double> returns;    ///< what the value function should say: estimate without the group's baseline
};

/// Loss of a step against a healthy cluster, scaled so that a value is a mean over the discount's reach: 0 healthy, -1
/// nothing trained. Weighted by wall time, so that sums over an episode are what goodput is made of.
double step_reward(const Step& step, const PpoOptions& options);

/// Generalised advantage estimates of one rollout. The discount runs with wall time: an interval with a long pause is
/// further away from what follows (semi-Markov). A rollout that was cut off bootstraps: its last step has no successor
/// that was seen, so that it serves as the successor of the step before, and gets an advantage of 0.
Advantages estimate_advantages(const Rollout& rollout, const PpoOptions& options);

/// All rollouts, with the baseline of same-disturbance groups (input-dependent baselines: Mao et al., ICLR 2019): from
/// each advantage goes the mean of the advantages that the *other* episodes of the group had at that time, which is
/// what the disturbance sequence brought and the value function could not know. Groups of one are left as they are.
std::vector<Advantages> estimate_advantages(std::span<const Rollout> rollouts, const PpoOptions& options);

/// Adam (Kingma and Ba 2015), with its moments as data.
struct Adam {
    std::vector<double> first;
    std::vector<double> second;
    std::int64_t steps = 0;
    bool operator==(const Adam&) const = default;
    void step(std::span<double> parameters, std::span<const double> gradient, double rate);
};

/// Loss of one decision under PPO, by logits and value: adds to `by_logits` and `by_value`, returns what is reported.
struct PpoTerms {
    double policy_loss = 0.0;
    double value_loss = 0.0;
    double entropy = 0.0;
    double kl = 0.0;       ///< k3 estimate (Schulman 2020): ratio - 1 - log ratio
    double clipped = 0.0;  ///< 1 where the ratio was clipped
};
PpoTerms ppo_terms(std::span<const double> logits, double value, const Step& step, double advantage, double target,
                   const PpoOptions& options, std::span<double> by_logits, double& by_value);

/// Cross entropy of one decision against a teacher's choice: adds to `by_logits`, returns the loss.
double imitation_terms(std::span<const double> logits, const Step& step, std::span<double> by_logits);

}  // namespace headway::policies
