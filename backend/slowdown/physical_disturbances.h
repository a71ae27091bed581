#pragma once

#include <string>
#include <vector>

#include "scenarios/costs/work.h"
#include "scenarios/language/scenario.h"

/// A scenario's disturbances as things that are done to processes and messages. Several that act on one part combine as
/// in the simulator: factors multiply, delays add, the lowest power limit holds.
namespace headway::backend {

/// What is left of a way for messages.
struct LinkState {
    double bandwidth = 1.0;     ///< over nominal
    scenarios::Duration delay;  /// added to every message
    bool healthy() const { return bandwidth >= 1.0 && delay <= scenarios::Duration(); }
};

/// A process that is killed.
struct ProcessLoss {
    scenarios::Duration at;
    int gpu = 0;
    int disturbance = 0;
};

class PhysicalDisturbances {
  public:
    explicit PhysicalDisturbances(const scenarios::Scenario& scenario);

    /// Speed that is left to a GPU, 1 each when healthy. A power cap leaves compute the clock that the cap allows:
    /// cubic in what is left above idle power, over what the board's own limit allows (sim/thermal/gpu_thermal.h).
    scenarios::GpuPace gpu(int gpu, scenarios::Duration at) const;
    /// Of messages between two GPUs. `from_stage`, `to_stage`: where they stand, for causes that name a pipeline hop.
    LinkState link(int from_gpu, int to_gpu, int from_stage, int to_stage, scenarios::Duration at) const;
    /// Nominal bytes a second between two GPUs, one direction.
    double nominal_bandwidth(int from_gpu, int to_gpu) const;
    /// On how many nodes these GPUs are.
    int nodes_of(const std::vector<int>& gpus) const;
    double jitter_spread(scenarios::Duration at) const;
    double sequence_spread(scenarios::Duration at) const;

    const std::vector<ProcessLoss>& losses() const { return losses_; }  ///< by time
    /// Whether any disturbance slows links at any time.
    bool acts_on_links() const { return acts_on_links_; }
    /// One sentence a disturbance that has no physical counterpart here and will not be felt. `paced`: operations are
    /// padded to a declared duration, so that they can also be made shorter.
    std::vector<std::string> not_physical(bool paced) const;

  private:
    struct Interval {
        scenarios::Duration start, end;
        bool covers(scenarios::Duration at) const { return start <= at && at < end; }
    };
    bool hits(const scenarios::GpuTarget& target, int gpu) const;

    scenarios::Cluster cluster_;
    std::vector<scenarios::Disturbance> disturbances_;
    std::vector<Interval> intervals_;
    std::vector<ProcessLoss> losses_;
    bool acts_on_links_ = false;
};

}  // namespace headway::backend
