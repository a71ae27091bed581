#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "scenarios/language/units.h"

/// What goes wrong, as causes on a timeline. Clocks and temperatures follow from causes and load; they are not
/// replayed.
namespace headway::scenarios {

/// Which GPUs a cause acts on. At most one of the fields is set (-1: not set); all -1 means the whole cluster.
struct GpuTarget {
    int gpu = -1;
    int node = -1;
    int rack = -1;
    bool operator==(const GpuTarget&) const = default;
};

/// Which links a cause acts on. Exactly one is set.
struct LinkTarget {
    int rack_uplink = -1;   ///< leaf to spine, both directions
    int node_network = -1;  ///< all NICs of a node
    int nic = -1;           ///< NIC of this GPU (and of the GPUs that share it)
    int node_fabric = -1;   ///< between the GPUs of a node
    int pipeline_hop = -1;  ///< every send between stages k and k+1, in all replicas
    bool operator==(const LinkTarget&) const = default;
};

/// One row of a recorded speed: from `time` after the start of the disturbance the GPU runs at `factor` of its nominal
/// speed.
struct SpeedPoint {
    Duration time;
    double factor = 1.0;
    bool operator==(const SpeedPoint&) const = default;
};

struct Airflow {  ///< slow thermal resistance times `resistance_factor`
    GpuTarget at;
    double resistance_factor = 1.0;
    bool operator==(const Airflow&) const = default;
};
struct Inlet {  ///< inlet temperature becomes this
    GpuTarget at;
    Celsius temperature;
    bool operator==(const Inlet&) const = default;
};
struct PowerCap {
    GpuTarget at;
    Watts limit;  ///< of each GPU
    bool operator==(const PowerCap&) const = default;
};
struct CoTenant {  ///< shares taken from the job, 0 to 0.999
    GpuTarget at;
    double compute_share = 0.0;
    double memory_share = 0.0;
    bool operator==(const CoTenant&) const = default;
};
/// Compute speed over nominal: one constant `factor`, or a recorded `series` (in YAML a list, or the name of a CSV file
/// with columns time_s,factor; held until the next row, the last one to the end of the disturbance).
struct SpeedFactor {
    GpuTarget at;
    double factor = 1.0;             ///< 1 where there is a series
    std::vector<SpeedPoint> series;  ///< ascending times, the first at 0; empty: constant
    bool operator==(const SpeedFactor&) const = default;
};
struct LinkBandwidth {  ///< bandwidth left, over nominal
    LinkTarget at;
    double factor = 1.0;
    bool operator==(const LinkBandwidth&) const = default;
};
struct LinkDelay {  ///< added to every message
    LinkTarget at;
    Duration delay;
    bool operator==(const LinkDelay&) const = default;
};
struct LinkFlap {  ///< down for `down` at the start of each `period`
    LinkTarget at;
    Duration down;
    Duration period;
    bool operator==(const LinkFlap&) const = default;
};
struct GpuLoss {
    int gpu = 0;
    bool operator==(const GpuLoss&) const = default;
};
struct NodeLoss {
    int node = 0;
    bool operator==(const NodeLoss&) const = default;
};
struct NodeArrival {  ///< further spares become available
    int nodes = 1;
    bool operator==(const NodeArrival&) const = default;
};
struct SequenceLengths {  ///< coefficient of variation of a micro-batch's work
    double spread = 0.0;
    bool operator==(const SequenceLengths&) const = default;
};
struct Jitter {  ///< coefficient of variation of every GPU's time, drawn each iteration
    double spread = 0.0;
    bool operator==(const Jitter&) const = default;
};

using Cause = std::variant<Airflow, Inlet, PowerCap, CoTenant, SpeedFactor, LinkBandwidth, LinkDelay, LinkFlap, GpuLoss,
                           NodeLoss, NodeArrival, SequenceLengths, Jitter>;

struct Disturbance {
    std::string name;  ///< for reports; derived from the cause where the scenario gives none
    Duration start;
    std::optional<Duration> duration;  ///< absent: to the end of the run (losses: until repaired)
    Cause cause;
    bool operator==(const Disturbance&) const = default;
};

/// The key in YAML and the family in evaluations, in the order of the alternatives of `Cause`.
inline constexpr std::array<const char*, std::variant_size_v<Cause>> kCauseKinds{
    "airflow",   "inlet",    "power_cap", "co_tenant",    "speed_factor",     "link_bandwidth", "link_delay",
    "link_flap", "gpu_loss", "node_loss", "node_arrival", "sequence_lengths", "jitter"};

/// "airflow", "node_loss", ...
const char* kind_of(const Cause& cause);

/// "airflow of GPU 137", "loss of node 17": for reports, where the scenario gives no name.
std::string default_name(const Cause& cause);

/// Whether the cause takes GPUs away until they are repaired or replaced.
bool is_loss(const Cause& cause);

/// How often one family strikes and how hard. Starts are a Poisson process; severity and duration are log-uniform.
struct FamilyRate {
    double per_day = 0.0;  ///< events a day for each part the family acts on; 0: family is off
    double severity_min = 1.0;
    double severity_max = 1.0;
    Duration shortest = Duration::seconds(60);
    Duration longest = Duration::seconds(3600);
    bool operator==(const FamilyRate&) const = default;
};

/// Rates and severities from which the seeded generator draws a timeline. Losses last until repaired or replaced, so
/// their durations are not drawn; an arrival is an instant.
struct DisturbanceRates {
    std::optional<Duration> horizon;              ///< drawn until then; absent: run.time
    FamilyRate airflow{0.0, 1.2, 3.0};            ///< per GPU; severity: resistance factor
    FamilyRate inlet{0.0, 3.0, 15.0};             ///< per rack; severity: kelvins above the facility's inlet
    FamilyRate power_cap{0.0, 0.6, 0.95};         ///< per node; severity: share of the GPUs' power limit that is left
    FamilyRate co_tenant{0.0, 0.05, 0.6};         ///< per GPU; severity: share of compute and memory taken
    FamilyRate speed_factor{0.0, 0.3, 0.95};      ///< per GPU; severity: speed left
    FamilyRate link_bandwidth{0.0, 0.1, 0.8};     ///< per rack uplink and node network; severity: bandwidth left
    FamilyRate link_delay{0.0, 1e-5, 0.03};       ///< per node network; severity: seconds added to a message
    FamilyRate link_flap{0.0, 0.01, 0.5};         ///< per node network; severity: share of the time it is down
    FamilyRate gpu_loss{0.0, 1.0, 1.0};           ///< per GPU
    FamilyRate node_loss{0.0, 1.0, 1.0};          ///< per node
    FamilyRate node_arrival{0.0, 1.0, 1.0};       ///< per cluster; severity: nodes
    FamilyRate sequence_lengths{0.0, 0.05, 0.5};  ///< per cluster; severity: spread
    FamilyRate jitter{0.0, 0.01, 0.1};            ///< per cluster; severity: spread
    bool operator==(const DisturbanceRates&) const = default;
};

}  // namespace headway::scenarios
