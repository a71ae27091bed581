#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "scenarios/language/scenario.h"
#include "sim/thermal/gpu_thermal.h"

/// The disturbances of a scenario as a function of time. Several that act on one part combine: factors multiply, delays
/// add, the lowest power limit holds, of several inlet temperatures the highest. What ends is restored.
namespace headway::sim {

using scenarios::Duration;

/// A link that is down keeps this share of its bandwidth, so that messages wait rather than fail; causes that come
/// together leave no link less (at a hundredth of it flows end beyond what SimGrid's clock resolves).
inline constexpr double kDownLinkShare = 1e-4;

/// Everything the disturbances act on, at one moment. Losses are not in here: see `LossEvent`.
struct Environment {
    std::vector<GpuSurroundings> surroundings;  ///< [GPUs]
    std::vector<double> compute_share;          ///< [GPUs] of the compute speed left by co-tenants and recorded factors
    std::vector<double> memory_share;           ///< [GPUs]
    std::vector<double> fabric_factor;          ///< [nodes] bandwidth between the node's GPUs
    std::vector<double> node_network;           ///< [nodes] of all NICs of the node
    std::vector<double> nic_factor;             ///< [GPUs] of the NIC that the GPU uses
    std::vector<double> uplink_factor;          ///< [racks]
    std::vector<Duration> node_delay;           ///< [nodes] added to every message sent by a NIC of the node
    std::vector<Duration> uplink_delay;         ///< [racks] added to every message that leaves or enters the rack
    std::vector<Duration> hop_delay;            ///< [hops between stages that are named by a disturbance, else empty]
    std::vector<double> hop_factor;             ///< bandwidth of sends between stages k and k+1
    double sequence_spread = 0.0;
    double jitter_spread = 0.0;

    /// Share of its bandwidth that is left to a GPU's way into the network.
    double port_share(int gpu, int node) const {
        return std::max(kDownLinkShare,
                        nic_factor[static_cast<std::size_t>(gpu)] * node_network[static_cast<std::size_t>(node)]);
    }
};

struct LossEvent {
    Duration at;
    int disturbance = 0;
    int gpu = -1;   ///< one GPU, or
    int node = -1;  ///< a whole node
    Duration repair;
};

struct ArrivalEvent {
    Duration at;
    int nodes = 0;  ///< negative: they leave again
};

class Timeline {
  public:
    /// Throws scenarios::ConfigError for parts that do not exist and for values outside what they allow.
    explicit Timeline(const scenarios::Scenario& scenario);

    /// Environment at `at`, without the disturbances in `without` (sorted indices).
    Environment environment(Duration at, const std::vector<int>& without = {}) const;
    /// The same with everything healthy.
    Environment healthy() const;

    /// The same number for equal environments (of one timeline).
    std::uint64_t fingerprint(Duration at) const;

    /// First moment after `after` at which the environment changes; Duration::nanoseconds(INT64_MAX) when never.
    Duration next_change(Duration after) const;
    /// Disturbances (other than losses and arrivals) in force at `at`.
    std::vector<int> active(Duration at) const;

    /// When a disturbance ends by itself; nothing for losses and for what lasts to the end of the run.
    std::optional<Duration> end_of(int disturbance) const;

    const std::vector<LossEvent>& losses() const { return losses_; }
    const std::vector<ArrivalEvent>& arrivals() const { return arrivals_; }

    /// GPUs a thermal or speed cause acts on; empty for causes that act on links.
    std::vector<int> gpus_of(int disturbance) const;
    /// True for airflow, inlet and power cap: they act through temperature or the power limit.
    static bool thermal(const scenarios::Cause& cause);

  private:
    struct Interval {
        Duration start;
        Duration end;
    };

    void check(std::size_t index) const;
    void apply(int index, Duration at, Environment& environment) const;
    std::vector<int> targets(const scenarios::GpuTarget& target) const;

    scenarios::Cluster cluster_;
    std::vector<scenarios::Disturbance> disturbances_;
    std::vector<Interval> intervals_;
    std::vector<LossEvent> losses_;       ///< by time
    std::vector<ArrivalEvent> arrivals_;  ///< by time
};

}  // namespace headway::sim
