#pragma once

#include <cstdint>
#include <functional>

#include "policies/policy.h"
#include "policies/training_cluster.h"
#include "scenarios/record/run_events.h"

namespace headway::policies {

struct Decision {
    std::int64_t iteration = 0;  ///< useful iterations trained so far
    Observation observation;
    std::vector<Candidate> candidates;
    Action chosen;
};

struct EpisodeOptions {
    int decision_interval = 10;       ///< iterations
    std::int64_t max_iterations = 0;  ///< useful iterations to train; 0: until the cluster says that the scenario ended
    std::uint64_t seed = 1;
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

/// Called after every decision and before it is acted on; returns false to end the episode there (Ctrl-C).
using DecisionSink = std::function<bool(const Decision&)>;

/// The loop that every run goes through: run an interval, observe, propose, decide, act. It ends when `max_iterations`
/// useful iterations are trained, when the cluster says that the scenario ended (no decision follows either), or when
/// `sink` says so. Throws std::invalid_argument for an interval below 1, std::logic_error when policy or cluster break
/// their contracts.
EpisodeSummary run_episode(TrainingCluster& cluster, Policy& policy, const EpisodeOptions& options,
                           const DecisionSink& sink);

}  // namespace headway::policies
