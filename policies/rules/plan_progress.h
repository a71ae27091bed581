#pragma once

#include <optional>
#include <vector>

#include "policies/training_cluster.h"

namespace headway::policies {

/// How a job trains that has one plan throughout an episode: useful iterations as a function of time, and when it
/// stands still after losses of parts that the plan needs.
class PlanProgress {
  public:
    struct Outage {
        Duration broken_off;  ///< the last iteration ended
        Duration noticed;
        Duration resumed;
        double iterations_lost = 0.0;
    };

    /// Runs `world` from the start of an episode under `plan`, waiting for replacements, until it ends or `end` is
    /// reached. Nothing where the plan cannot be run at the start.
    static std::optional<PlanProgress> measure(TrainingCluster& world, std::uint64_t seed, const scenarios::Plan& plan,
                                               int interval, Duration end);

    /// Between samples in proportion; before the first and after the last at the nearest rate.
    double iterations_at(Duration time) const;
    /// Mean time of an iteration around `time`.
    Duration iteration_at(Duration time) const;
    /// The outage during which the plan cannot run at `time`.
    const Outage* outage_at(Duration time) const;
    /// The outage that begins in [from, to).
    const Outage* outage_between(Duration from, Duration to) const;

  private:
    struct Sample {
        Duration time;
        double iterations = 0.0;
    };
    std::vector<Sample> samples_;
    std::vector<Outage> outages_;
};

}  // namespace headway::policies
