#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "policies/training_cluster.h"
#include "scenarios/language/adapt.h"

namespace headway::sim {

/// What becomes of measurements on their way to the policy: sensors are off, and they are late. What is measured stays
/// as it is; only what is told differs.
///
/// Every time (compute, exposed communication, idle) and bandwidth is multiplied by 1 + time_noise x a normal number
/// (never below a tenth), every temperature has temperature_noise x a normal number added, drawn anew for each `pass`.
/// Clock, power, throttle reasons and memory are counters that the driver knows exactly. With a delay of d intervals
/// the readings of the d-th pass before are told; until there are so many under the episode's first plan, its first
/// readings; after a change of plan none (no ranks, no groups), so that nothing measured under one plan is taken for
/// the other's. Durations of iterations, losses and what is available are the job's own knowledge: exact, at once.
class Telemetry {
  public:
    explicit Telemetry(const scenarios::Sensors& sensors);

    void start(std::uint64_t seed);
    void plan_changed();
    /// Takes the measurements of an interval and leaves what is told at its end.
    void pass(policies::Measurements& measured);

  private:
    struct Readings {
        std::vector<policies::RankMeasurement> ranks;
        std::vector<policies::GroupMeasurement> groups;
    };
    void disturb(policies::Measurements& measured) const;

    scenarios::Sensors sensors_;
    std::uint64_t seed_ = 1;
    std::uint64_t passes_ = 0;
    bool first_plan_ = true;
    std::deque<Readings> under_way_;  ///< the latest last
};

}  // namespace headway::sim
