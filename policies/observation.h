#pragma once

#include <optional>
#include <vector>

#include "policies/training_cluster.h"

namespace headway::policies {

struct RankObservation {
    RankMeasurement measured;
    double relative_score = 1.0;    ///< compute speed over that of the fastest rank with the same stage (1.0 best)
    double individual_score = 1.0;  ///< compute speed over this rank's own best so far (1.0 best)
};

/// All that a policy sees. No cause, no seed, nothing that tells whether the cluster is simulated.
struct Observation {
    Duration now;
    Duration iteration;                ///< mean of the interval; 0 when none completed
    std::vector<Duration> iterations;  ///< of the interval, in order
    std::vector<RankObservation> ranks;
    std::vector<GroupMeasurement> groups;
    std::optional<Loss> loss;
    std::vector<int> unavailable_gpus;  ///< as in Measurements
    scenarios::Plan plan;
};

/// Builds observations from raw measurements; remembers each GPU's own best. The same code serves every cluster.
///
/// The speed of a rank is work over compute time. Work counts micro-batches times layers held (the logits layer as the
/// share of a layer that its FLOPs are), divided by the ranks that share it, so that speeds of one GPU compare across
/// plans and those of replicas compare when their micro-batches differ. A rank that computed nothing scores 1. Sensors
/// are rounded to what they resolve (0.1 C, 1 MHz, 1 W, 1 MB/s), so that a record holds exactly what a policy saw.
class ObservationBuilder {
  public:
    void start_episode();
    /// Throws std::invalid_argument when `measured.ranks` has neither one entry a rank of `plan` nor none at all
    /// (nothing ran).
    Observation build(const ClusterFacts& facts, const scenarios::Plan& plan, const Measurements& measured,
                      Duration now);

  private:
    std::vector<double> best_speed_of_gpu_;  ///< [GPU numbers seen so far], 0: not yet measured
};

}  // namespace headway::policies
