#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "scenarios/language/units.h"

/// What goes wrong, as causes on a timeline. Clocks and temperatures follow from causes and load; they are not replayed.
namespace headway::scenarios {

/// Which GPUs a cause acts on. Exactly one of the fields is set (-1: not set); all -1 means the whole cluster.
struct GpuTarget {
  int gpu = -1;
  int node = -1;
  int rack = -1;
};

/// Which links a cause acts on. Exactly one is set.
struct LinkTarget {
  int rack_uplink = -1;        ///< leaf to spine, both directions
  int node_network = -1;       ///< all NICs of a node
  int nic = -1;                ///< NIC of this GPU (and of the GPUs that share it)
  int node_fabric = -1;        ///< between the GPUs of a node
  int pipeline_hop = -1;       ///< every send between stages k and k+1, in all replicas
};

struct Airflow { GpuTarget at; double resistance_factor = 1.0; };              ///< slow thermal resistance times this
struct Inlet { GpuTarget at; Celsius temperature; };                           ///< inlet temperature becomes this
struct PowerCap { GpuTarget at; Watts limit; };
struct CoTenant { GpuTarget at; double compute_share = 0.0; double memory_share = 0.0; };  ///< taken from the job, 0..1
struct SpeedFactor { GpuTarget at; std::string file; double factor = 1.0; };   ///< CSV time_s,factor; or one constant factor
struct LinkBandwidth { LinkTarget at; double factor = 1.0; };
struct LinkDelay { LinkTarget at; Duration delay; };                           ///< added to every message
struct LinkFlap { LinkTarget at; Duration down; Duration period; };            ///< down for `down` at the start of each period
struct GpuLoss { int gpu = 0; };
struct NodeLoss { int node = 0; };
struct NodeArrival { int nodes = 1; };                                         ///< spares that become available
struct SequenceLengths { double spread = 0.0; };   ///< coefficient of variation of a micro-batch's work
struct Jitter { double spread = 0.0; };            ///< coefficient of variation of every GPU's time, drawn each iteration

using Cause = std::variant<Airflow, Inlet, PowerCap, CoTenant, SpeedFactor, LinkBandwidth, LinkDelay, LinkFlap, GpuLoss,
                           NodeLoss, NodeArrival, SequenceLengths, Jitter>;

struct Disturbance {
  std::string name;                    ///< for reports; derived from the cause where the scenario gives none
  Duration start;
  std::optional<Duration> duration;    ///< absent: to the end of the run (losses: until repaired)
  Cause cause;
};

/// "airflow", "node_loss", ...: the key in YAML and the family in evaluations.
const char* kind_of(const Cause& cause);

/// Rates and severities from which the seeded generator draws a timeline (each rate 0: family is off).
struct DisturbanceRates {
  double airflow_per_gpu_day = 0.0;
  double inlet_per_rack_day = 0.0;
  double power_cap_per_node_day = 0.0;
  double co_tenant_per_gpu_day = 0.0;
  double speed_factor_per_gpu_day = 0.0;
  double link_bandwidth_per_link_day = 0.0;
  double link_delay_per_link_day = 0.0;
  double link_flap_per_link_day = 0.0;
  double gpu_loss_per_gpu_day = 0.0;
  double node_loss_per_node_day = 0.0;
  double severity_min = 1.1;           ///< slowdown of the affected part, log-uniform between min and max
  double severity_max = 3.0;
  Duration duration_min = Duration::seconds(30);     ///< log-uniform
  Duration duration_max = Duration::seconds(36000);
};

}  // namespace headway::scenarios
