#pragma once

#include <cstdint>

#include "policies/episode_options.h"
#include "policies/planning/candidate_generator.h"
#include "policies/policy.h"
#include "policies/reward.h"
#include "policies/training_cluster.h"
#include "scenarios/record/run_events.h"

namespace headway::policies {

struct Decision {
    std::int64_t iteration = 0;  ///< useful iterations trained so far
    Observation observation;
    std::vector<Candidate> candidates;
    Action chosen;
};

struct EpisodeSummary {
    std::int64_t iterations = 0;  ///< useful: trained and not rolled back
    std::int64_t iterations_lost = 0;
    std::int64_t decisions = 0;
    std::int64_t switches = 0;
    bool complete = true;  ///< false: `sink` ended it
    Duration paused;       ///< in recovery and switches
    Duration wall;
};

/// The decision as the run record keeps it.
scenarios::DecisionEvent decision_event(const Decision& decision);

/// What was measured before that decision, from its record: `ObservationBuilder::build` then gives the observation
/// again.
Measurements measurements_of(const scenarios::DecisionEvent& event);

/// Who wants to know what happens in an episode.
class EpisodeSink {
  public:
    virtual ~EpisodeSink() = default;
    /// After every decision and before it is acted on; returns false to end the episode there (Ctrl-C).
    virtual bool decided(const Decision&) { return true; }
    /// What became of the decision before.
    virtual void earned(const Interval&) {}
};

/// The loop that every run goes through: run an interval, observe, propose, decide, act. It ends when a limit of
/// `options` is reached, when the cluster says that the scenario ended (no decision follows either), or when `sink`
/// says so. `generator` is one for the cluster's facts; passing it in lets many episodes share what it remembers.
/// Throws std::invalid_argument for an interval below 1, std::logic_error when policy or cluster break their contracts.
EpisodeSummary run_episode(TrainingCluster& cluster, CandidateGenerator& generator, Policy& policy,
                           const EpisodeOptions& options, EpisodeSink& sink);

}  // namespace headway::policies
