#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "policies/learning/reduction.h"
#include "policies/learning/trained_policy.h"
#include "policies/learning/trainer.h"
#include "scenarios/language/scenario_set.h"

namespace headway::cli {

/// What a training depends on, besides the scenario set. Equal settings give equal policies, whatever the number of
/// worker processes.
struct TrainingSettings {
    std::uint64_t seed = 1;
    int rounds = 0;             ///< of comparisons, before the updates
    std::int64_t updates = 60;  ///< of PPO
    int groups = 24;            ///< scenarios an update, over all processes
    int episodes = 4;           ///< of the learner in each of them
    std::string teacher;        ///< imitated at first; empty: nobody
    int demonstrations = 96;    ///< episodes of the teacher
    int imitation_epochs = 8;
    int validate_every = 6;                ///< updates
    std::string reference = "hysteresis";  ///< the rule that gaps are against
    std::size_t workers = 0;               ///< processes on this machine; 0: one a processor. Changes no result
};

/// What happened, for whoever watches.
struct TrainingStep {
    policies::UpdateReport report;  ///< `update` counts rounds too; a round has no other figures of PPO than the loss
    std::string method;             ///< "comparison", "ppo"
    std::string stage;
    double reference_goodput = 0.0;
    bool validated = false;
    double validation_goodput = 0.0;
    double validation_lost = 0.0;
    bool best = false;  ///< the best so far: `best_policy` has changed
};

/// Trains a policy on a scenario set: imitation of a teacher where there is one, then rounds of comparisons (what would
/// another choice have earned?), then updates of PPO, all on episodes in worker processes. Every
/// process of `reduction` makes the same calls.
class Training {
  public:
    /// `set` and `reduction` outlive it.
    Training(const scenarios::ScenarioSet& set, const TrainingSettings& settings, policies::Reduction& reduction);
    /// Goes on from `state()`. Throws scenarios::ConfigError with `name` when it is of another set or other settings,
    /// or unreadable.
    static Training resume(const scenarios::ScenarioSet& set, const TrainingSettings& settings,
                           policies::Reduction& reduction, const std::string& state, const std::string& name);
    ~Training();
    Training(Training&&) noexcept;

    bool finished() const;
    std::int64_t updates_done() const;  ///< rounds of comparisons included
    /// Whether static, the rule and the teacher were run on the validation scenarios and the teacher was imitated.
    bool prepared() const;
    /// That. Returns false when `end_asked` ended it before it was done; nothing has changed then.
    bool prepare(const std::function<bool()>& end_asked);
    /// One update; empty when `end_asked` ended it before it was done: nothing has changed then. Only after `prepare`.
    std::optional<TrainingStep> step(const std::function<bool()>& end_asked);

    /// Best on the validation scenarios so far.
    const policies::TrainedPolicy& best_policy() const;
    double best_score() const;
    /// Of the best policy.
    double best_goodput() const;
    /// Mean validation goodput of static, of the rule and of the teacher (absent without one).
    double static_goodput() const;
    double rule_goodput() const;
    std::optional<double> teacher_goodput() const;

    /// Lines for the record, in order since the beginning of the training.
    const std::vector<std::string>& record_lines() const;
    /// Everything that going on needs.
    std::string state() const;

  private:
    class Impl;
    explicit Training(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace headway::cli
