#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backend/slowdown/episode_clock.h"
#include "backend/slowdown/operation_costs.h"
#include "backend/slowdown/physical_disturbances.h"
#include "backend/training/trainer.h"

namespace headway::backend {

/// Lets the time pass that an operation lacks: up to its declared duration where ranks run at a pace, and up to what a
/// disturbed processor would have taken. It sleeps: a slow rank needs no more of a core than a fast one, and its peers
/// keep theirs. An operation or a sleep that took too long is made up for by the next ones, up to one operation, so
/// that sums are exact also where ranks share cores.
class SlowedPace final : public Pace {
  public:
    /// `factor`: declared durations are those of the cost model times this; absent: operations take what they take.
    /// References are kept.
    SlowedPace(const scenarios::Job& job, const scenarios::Cluster& cluster, const scenarios::Plan& plan, int rank,
               std::optional<double> factor, const PhysicalDisturbances& disturbances, const EpisodeClock& clock);

    /// Draws what is drawn anew for the `execution`-th iteration of the episode, as the simulator does.
    void begin_iteration(std::uint64_t seed, std::int64_t execution);
    void finish(const scenarios::Instruction& instruction, scenarios::Duration spent) override;

    /// Since they were last asked for: operations, and by how much those that took longer than declared did.
    struct Overrun {
        std::int64_t operations = 0;
        std::int64_t late = 0;
        scenarios::Duration time;
    };
    Overrun take_overrun();

  private:
    scenarios::Duration due(const scenarios::Instruction& instruction, scenarios::Duration spent) const;
    void pass(scenarios::Duration time);

    OperationCosts costs_;
    std::optional<double> factor_;
    const PhysicalDisturbances& disturbances_;
    const EpisodeClock& clock_;
    int gpu_ = 0;
    int rank_ = 0;
    std::size_t ranks_ = 1;
    std::size_t first_micro_batch_ = 0;  ///< of the replica, among those of all replicas
    std::size_t micro_batches_ = 0;      ///< of all replicas
    double jitter_ = 1.0;
    std::vector<double> sequence_;  ///< [micro-batches of all replicas] or empty
    scenarios::Duration owed_;      ///< by which the rank is behind its declared pace
    Overrun overrun_;
};

}  // namespace headway::backend
