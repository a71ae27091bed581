#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policies/episode.h"
#include "policies/learning/features.h"
#include "policies/learning/trained_policy.h"
#include "scenarios/language/random.h"

namespace headway::policies {

/// One decision of a recorded episode and what became of it.
struct Step {
    Features features;
    std::vector<std::uint8_t> allowed;  ///< [candidates], empty: all
    int action = 0;
    double log_probability = 0.0;  ///< of `action` when it was chosen; 0 when a teacher chose
    double value = 0.0;            ///< what the network expected then
    double reward = 0.0;           ///< policies/reward.h: useful work over the healthy plan's in the same time
    double weight = 0.0;           ///< wall time of the interval over that of a healthy one
    double time = 0.0;             ///< of the decision, in healthy intervals since the start of the episode
};

/// An episode as the learner sees it.
struct Rollout {
    std::int64_t group = 0;     ///< episodes of equal group met the same disturbances: same scenario and seed
    std::int64_t scenario = 0;  ///< index in the curriculum
    bool terminated = false;    ///< the job was over; false: cut off, and the value of what follows counts
    std::vector<Step> steps;
    double goodput = 0.0;  ///< useful work of the whole episode over the healthy plan's in the same time
    std::int64_t switches = 0;

    bool operator==(const Rollout& other) const;
};

struct RolloutOptions {
    EpisodeOptions episode;  ///< random length: set max_time or max_iterations from a draw
    std::int64_t group = 0;
    std::int64_t scenario = 0;
    bool sample = true;  ///< false: the best candidate, as when deployed
};

/// One episode under `policy`'s network, actions drawn from `stream`.
Rollout collect(TrainingCluster& cluster, CandidateGenerator& generator, const TrainedPolicy& policy,
                const RolloutOptions& options, scenarios::RandomStream& stream);

/// One episode under a teacher (the oracle, a rule), for imitation. Candidates that only the teacher asked for
/// (Candidate::Kind::kFurther) are not allowed in the steps, so that steps in which it chose one teach nothing.
Rollout demonstrate(TrainingCluster& cluster, CandidateGenerator& generator, Policy& teacher,
                    const RolloutOptions& options);

/// For the pipe between processes. Equal rollouts give equal bytes. `rollout_from_bytes` throws std::runtime_error for
/// bytes that `rollout_bytes` of this version did not write.
std::string rollout_bytes(const Rollout& rollout);
Rollout rollout_from_bytes(std::string_view bytes);

}  // namespace headway::policies
