#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policies/learning/comparison.h"
#include "policies/learning/rollout.h"
#include "policies/learning/trained_policy.h"
#include "scenarios/language/scenario_set.h"

namespace headway::cli {

/// Episodes that meet the same disturbances, run in one worker process.
struct TrainingGroup {
    std::uint64_t index = 0;  ///< of the scenario in its set
    std::string family;       ///< empty: drawn by weight
    const scenarios::SetStage* stage = nullptr;
    std::int64_t group = 0;
    std::int64_t slot = 0;  ///< of the family in the curriculum
    int episodes = 1;
    std::uint64_t actions = 1;  ///< seed of the exploration
};

struct GroupResult {
    double reference_goodput = 0.0;
    std::vector<policies::Rollout> rollouts;
};

/// A rule once, then the learner `episodes` times, in the drawn scenario. Its end is no end of the job but where it is
/// cut off, so that nothing can be put off beyond it.
GroupResult explore(const scenarios::ScenarioSet& set, const TrainingGroup& group,
                    const policies::TrainedPolicy& learner, const std::string& reference);

struct ComparedGroup {
    double reference_goodput = 0.0;
    double goodput = 0.0;
    std::vector<policies::Comparison> comparisons;
};

/// A rule once, then the learner as it would be deployed, and what other choices in some of its decisions would have
/// earned.
ComparedGroup compare(const scenarios::ScenarioSet& set, const TrainingGroup& group,
                      const policies::TrainedPolicy& learner, const std::string& reference);

/// A teacher's episode in the drawn scenario.
policies::Rollout teach(const scenarios::ScenarioSet& set, const TrainingGroup& group, const std::string& teacher);

struct ValidationFigures {
    double goodput = 0.0;
    double switches = 0.0;
};

/// One validation scenario under a policy by name, or as the learner would be deployed.
ValidationFigures validate_named(const scenarios::ScenarioSet& set, std::uint64_t index, const std::string& policy);
ValidationFigures validate_learner(const scenarios::ScenarioSet& set, std::uint64_t index,
                                   const policies::TrainedPolicy& learner);

/// Between processes; never stored. Reading throws std::runtime_error for bytes of something else.
std::string group_bytes(const GroupResult& result);
GroupResult group_from_bytes(const std::string& bytes);
std::string compared_bytes(const ComparedGroup& result);
ComparedGroup compared_from_bytes(const std::string& bytes);
std::string validation_bytes(const ValidationFigures& figures);
ValidationFigures validation_from_bytes(const std::string& bytes);

}  // namespace headway::cli
