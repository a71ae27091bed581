#pragma once

#include <cstdint>
#include <functional>

#include "policies/policy.h"
#include "policies/training_cluster.h"

namespace headway::policies {

struct Decision {
  Observation observation;
  std::vector<Candidate> candidates;
  Action chosen;
};

struct EpisodeOptions {
  int decision_interval = 10;            ///< iterations
  int max_iterations = 0;                ///< useful iterations to train; 0: until the cluster says that the scenario ended
  std::uint64_t seed = 1;
};

struct EpisodeSummary {
  int iterations = 0;                    ///< useful: trained and not rolled back
  int iterations_lost = 0;
  int decisions = 0;
  int switches = 0;
  Duration paused;                       ///< in recovery and switches
  Duration wall;
};

/// Called after every decision; returns false to end the episode (Ctrl-C).
using DecisionSink = std::function<bool(const Decision&)>;

/// The loop that every run goes through: run an interval, observe, propose, decide, act.
EpisodeSummary run_episode(TrainingCluster& cluster, Policy& policy, const EpisodeOptions& options, const DecisionSink& sink);

}  // namespace headway::policies
