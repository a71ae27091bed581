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
    Duration repaired;  ///< when the part itself is back
    std::string what;   ///< "node 17", "GPU 5"
};

/// Spare nodes and repairs. A spare takes the place of the node in which something was lost, under the same GPU
/// numbers; the broken node becomes a spare when it is repaired.
class Facility {
  public:
    Facility(const scenarios::Cluster& cluster, const std::vector<ArrivalEvent>& arrivals);

    struct Replacement {
        Duration at;         ///< the place is filled again
        bool spare = false;  ///< false: by the repaired part itself
    };
    /// The earliest replacement of an outage, taken at once.
    Replacement replace(const Outage& outage, Duration now);

    void start();

  private:
    struct Spare {
        Duration from;
        Duration until;
    };
    scenarios::Facility facility_;
    std::vector<ArrivalEvent> arrivals_;
    std::vector<Spare> spares_;
};

}  // namespace headway::sim
