#pragma once

#include <cstdint>
#include <optional>
#include <string>

/// What a training or an evaluation tells about itself. No wall clock: the same training gives the same record.
namespace headway::scenarios {

struct LearningHeader {
    enum class Kind { kTraining, kEvaluation } kind = Kind::kTraining;
    std::string name;          ///< of the curriculum; of an evaluation the policies
    std::uint64_t seed = 1;    ///< of an evaluation: how many seeds
    std::int64_t planned = 0;  ///< updates, or scenarios
    bool operator==(const LearningHeader&) const = default;
};

/// One update of a policy; figures are means over its episodes and decisions.
struct TrainingUpdateEvent {
    std::int64_t update = 0;  ///< 1 after the first
    std::string method;       ///< "comparison" or "ppo"; figures that a method lacks are 0
    std::string stage;        ///< of the curriculum
    std::int64_t episodes = 0;
    std::int64_t decisions = 0;
    double goodput = 0.0;            ///< of the learner; with ppo while exploring
    double reference_goodput = 0.0;  ///< of a rule in the same episodes
    double switches = 0.0;           ///< an episode
    double policy_loss = 0.0;
    double value_loss = 0.0;
    double entropy = 0.0;
    double kl = 0.0;
    double clip_fraction = 0.0;
    double explained_variance = 0.0;
    double learning_rate = 0.0;
    double gradient_norm = 0.0;
    bool operator==(const TrainingUpdateEvent&) const = default;
};

/// A policy judged: on the validation scenarios after an update, or on one scenario of an evaluation.
struct EvaluationEvent {
    std::int64_t update = -1;  ///< -1: not during a training
    std::string policy;
    std::string scenario;  ///< empty: mean over `scenarios`
    std::string family;
    std::int64_t scenarios = 1;
    double goodput = 0.0;
    std::optional<double> recovered_share;
    double lost_fraction = 0.0;
    double switches = 0.0;
    bool operator==(const EvaluationEvent&) const = default;
};

}  // namespace headway::scenarios
