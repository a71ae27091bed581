#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/language/units.h"

/// Catalogue entries of hardware. Every value comes from scenarios/gpus/ or scenarios/fabrics/, where its source
/// stands.
namespace headway::scenarios {

/// Two-pole thermal model of one GPU and its cooling: T = inlet + R_fast * lowpass(P, tau_fast) + R_slow * lowpass(P,
/// tau_slow).
struct Thermal {
    KelvinPerWatt fast_resistance;
    Duration fast_time;
    KelvinPerWatt slow_resistance;  ///< of the coolest slot
    Duration slow_time;
    double hot_slot_factor = 1.0;  ///< slow resistance of slots 0, 3, 4, 7 over that of the others
    Celsius max_operating;         ///< software thermal slowdown acts above
    Celsius slowdown;              ///< hardware slowdown: clock is halved
    Celsius shutdown;
    double clock_loss_mhz_per_kelvin = 0.0;  ///< at the power cap, per kelvin of warming
    bool operator==(const Thermal&) const = default;
};

struct GpuType {
    std::string name;
    FlopsPerSecond peak_half;                   ///< dense fp16/bf16 tensor-core peak at `boost_clock`
    FlopsPerSecond peak_fp8;                    ///< 0 where the type has none
    std::optional<FlopsPerSecond> peak_single;  ///< fp32 as GEMMs run in it (CUDA cores or TF32); absent: not known
    Bytes memory;
    BytesPerSecond memory_bandwidth;
    int sm_count = 1;
    Megahertz boost_clock;  ///< the clock the peaks are stated for
    Megahertz min_clock;
    Megahertz clock_step;
    Watts power_limit;
    Watts idle_power;
    Thermal thermal;
    // Fitted; see the catalogue for the tables they were fitted to.
    double gemm_efficiency = 1.0;      ///< share of the fp16/bf16 peak that the main loop of a GEMM reaches
    double fp8_gemm_efficiency = 1.0;  ///< share of the fp8 peak
    double gemm_depth_lost = 0.0;      ///< elements of the inner dimension that filling and draining a tile cost
    double wave_quantisation =
        1.0;  ///< 1: the last wave of tiles takes as long as a full one; 0: tiles are spread evenly
    /// Side of the square result tiles that GEMMs are cut into; absent: 256 x 128, as on tensor cores.
    std::optional<int> gemm_tile;
    double unaligned_efficiency = 1.0;          ///< of GEMMs and passes whose rows are no multiple of 16 bytes
    double attention_forward_efficiency = 0.5;  ///< share of the peak that fused attention reaches
    double attention_backward_efficiency = 0.5;
    double memory_efficiency = 1.0;  ///< share of the bandwidth that streaming kernels reach
    bool operator==(const GpuType&) const = default;
};

enum class FabricKind { kNvlink, kXgmi, kPcie, kInfiniband, kRoce, kSlingshot, kOmniPath, kEthernet };

/// One of the ways in which NCCL moves data. Low-latency protocols carry a flag with the data and so need no
/// synchronisation.
struct FabricProtocol {
    Duration start;        ///< once a collective: launch and first touch (fabrics inside a node; 0 for networks)
    Duration hop;          ///< one step of a ring or tree between neighbours
    Duration message;      ///< each further message of an exchange with many ranks of other nodes (networks)
    BytesPerSecond limit;  ///< most that one NIC carries under this protocol; 0: no limit of its own
    bool operator==(const FabricProtocol&) const = default;
};

/// One kind of link: between the GPUs of a node (bandwidth a GPU and direction) or from a NIC to its leaf switch
/// (bandwidth a NIC and direction).
struct Fabric {
    std::string name;
    FabricKind kind = FabricKind::kNvlink;
    BytesPerSecond bandwidth;            ///< line rate, one direction
    double efficiency = 1.0;             ///< share of the line rate that large messages of a ring reach
    double all_to_all_efficiency = 1.0;  ///< share that an exchange of everybody with everybody reaches
    FabricProtocol low_latency;          ///< NCCL's LL: a flag per 4 bytes
    FabricProtocol low_latency_128;      ///< NCCL's LL128: a flag per 120 bytes
    FabricProtocol simple;               ///< NCCL's Simple: whole buffers
    BytesPerSecond copy;  ///< pace of a collective's pass over the buffer in GPU memory (inside a node); 0: no pass
    /// No switch: a group of n of the node's g GPUs has only the links between them. Their share of the bandwidth for
    /// groups of 2, 3,
    /// ... GPUs stands in `mesh_shares`; beyond its end, or where it is empty, (n-1)/(g-1), as with a link between
    /// every two GPUs.
    bool mesh = false;
    std::vector<double> mesh_shares;
    bool reduces_in_switch = false;  ///< the switch adds up (NVLink SHARP), for all-reduce inside a node
    bool operator==(const Fabric&) const = default;
};

}  // namespace headway::scenarios
