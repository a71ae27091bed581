#pragma once

#include <string>
#include <vector>

#include "scenarios/language/cluster.h"
#include "sim/disturbances/timeline.h"

namespace headway::sim {

/// A part of the job's machines that is gone.
struct Outage {
    std::vector<int> gpus;
    int node = 0;
    int disturbance = -1;  ///< that took it or made it too hot; -1: none did
    bool by_heat = false;  ///< it shut itself down
    Duration noticed;
    Duration repaired;      ///< when the part itself is back
    Duration back;          ///< when its place is filled again
    bool by_spare = false;  ///< by a spare node, or else by the repaired part itself
    std::string what;       ///< "node 17", "GPU 5"
};

/// Spare nodes and repairs. A spare takes the place of the node in which something was lost, under the same GPU
/// numbers; the broken node becomes a spare when it is repaired. Spares are for parts that the job uses when they are
/// lost; idle ones wait for their own repair.
class Facility {
  public:
    Facility(const scenarios::Cluster& cluster, const std::vector<ArrivalEvent>& arrivals);

    struct Replacement {
        Duration at;         ///< the place is filled again
        bool spare = false;  ///< false: by the repaired part itself
    };
    /// The earliest replacement of an outage, taken at once.
    Replacement replace(const Outage& outage, Duration now);

    /// These GPUs cannot be used before `until`.
    void take_out(const std::vector<int>& gpus, Duration until);
    bool is_out(int gpu, Duration now) const { return out_until_[static_cast<std::size_t>(gpu)] > now; }
    /// All that are out, ascending.
    std::vector<int> out_at(Duration now) const;

    void start();

  private:
    struct Spare {
        Duration from;
        Duration until;
    };
    scenarios::Facility facility_;
    std::vector<ArrivalEvent> arrivals_;
    std::vector<Spare> spares_;
    std::vector<Duration> out_until_;  ///< [GPUs]
    Duration last_back_;               ///< the last of them
};

}  // namespace headway::sim
