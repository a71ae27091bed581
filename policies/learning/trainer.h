#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "policies/learning/comparison.h"
#include "policies/learning/ppo.h"
#include "policies/learning/reduction.h"
#include "policies/learning/rollout.h"
#include "policies/learning/trained_policy.h"

namespace headway::policies {

struct TrainerOptions {
    std::uint64_t seed = 1;
    std::int64_t updates = 200;  ///< over which the rate is annealed
    PpoOptions ppo;
    double imitation_rate = 2e-3;
    int imitation_minibatch = 256;  ///< decisions, over all processes together
    NetworkShape shape = default_shape();
    std::string curriculum;  ///< for the provenance
};

/// Figures of one update, over all processes.
struct UpdateReport {
    std::int64_t update = 0;  ///< 1 after the first
    std::int64_t episodes = 0;
    std::int64_t decisions = 0;
    double goodput = 0.0;  ///< mean of the episodes
    double switches = 0.0;
    double policy_loss = 0.0;
    double value_loss = 0.0;
    double entropy = 0.0;
    double kl = 0.0;
    double clip_fraction = 0.0;
    double explained_variance = 0.0;  ///< of the value function, before the update
    double learning_rate = 0.0;
    double gradient_norm = 0.0;  ///< before clipping, mean
    int epochs = 0;              ///< made, before the limit on the divergence
};

struct ComparisonReport {
    std::int64_t decisions = 0;
    std::int64_t comparisons = 0;
    double loss = 0.0;     ///< less of the expected advantage, mean of the last epoch
    double gain = 0.0;     ///< of the best candidate tried over the chosen one, mean, intervals
    double reached = 0.0;  ///< share of that gain in the choices that the network makes in the last epoch
};

struct ImitationReport {
    std::int64_t decisions = 0;
    double loss = 0.0;       ///< cross entropy, mean of the last epoch
    double agreement = 0.0;  ///< share of decisions in which the best candidate is the teacher's, after it
};

/// Learns from rollouts. Deterministic: the same options and the same rollouts in the same order give the same bytes,
/// whoever collected them. With a `Reduction` of several processes each brings its own rollouts, and all end with equal
/// policies.
class Trainer {
  public:
    /// `reduction` outlives the trainer.
    Trainer(const TrainerOptions& options, Reduction& reduction);
    ~Trainer();
    Trainer(Trainer&&) noexcept;

    /// As it is now: what collects rollouts and what is written to a file.
    const TrainedPolicy& policy() const;
    std::int64_t updates_done() const;

    /// Cross entropy on demonstrations, before the first update. The value function learns what the teacher earned.
    ImitationReport imitate(std::span<const Rollout> demonstrations, int epochs);
    /// Ascends the advantage that is expected over comparisons of choices (comparison.h, `comparison_terms`): a policy
    /// gradient with all compared actions at once and the same disturbances under each.
    ComparisonReport learn_from(std::span<const Comparison> comparisons, int epochs, double rate);
    UpdateReport update(std::span<const Rollout> rollouts);

    /// Everything that further updates depend on: parameters, moments, statistics, counters, options. The randomness of
    /// an update follows from seed and update index. `resume` throws scenarios::ConfigError for bytes that cannot be
    /// used (message with `name` and both versions).
    std::string checkpoint() const;
    static Trainer resume(std::string_view checkpoint, const std::string& name, Reduction& reduction);

  private:
    struct Impl;
    explicit Trainer(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace headway::policies
