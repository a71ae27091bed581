#pragma once

#include <string>

#include "scenarios/language/units.h"

namespace headway::scenarios {

/// A training stack and its age: what the software adds to, or saves on, the hardware's own time. One profile serves
/// every table and scenario that names the stack. Values and their sources are in scenarios/stacks/; scenarios/costs
/// says how each enters.
struct SoftwareStack {
    std::string name;

    // Kernels.
    bool flash_attention = false;  ///< fused attention: no sequence x sequence matrix in memory
    bool dropout = false;          ///< trains with dropout, in attention and after both blocks
    Duration kernel_gap;           ///< launch and drain of one kernel on the GPU, when the host keeps up
    double memory_traffic = 1.0;  ///< bytes of elementwise kernels over those of the fused set counted in costs/layer.h
    double copies = 1.0;          ///< of 1: each change of the head layout is a copy of its own
    double cast_traffic = 0.0;    ///< fp8: share of the casts and transposes that run as passes of their own
    double loss_traffic = 0.0;    ///< bytes moved per logit by the loss, forward and backward
    bool pads_vocabulary = true;  ///< also without tensor parallelism: to a multiple of 128 rows a rank

    // The host: a layer takes the longer of its GPU time and these.
    Duration host_forward;          ///< to issue the forward of one layer
    Duration host_backward;         ///< to issue its backward
    Duration host_collective;       ///< added per tensor collective
    Duration host_unfused_softmax;  ///< added per layer where the fused softmax cannot run
    Duration host_loss;             ///< per micro-batch on the last stage, forward and backward each
    Duration host_message;          ///< per message between stages
    Duration host_step;             ///< per optimizer step

    // Communication.
    double tensor_overlap =
        0.0;  ///< share of tensor and context communication hidden where overlap is asked for (0..1)
    double input_gradient_overlap =
        0.0;  ///< share of the input gradient's collective hidden behind the weight gradient (0..1)
    double tensor_bandwidth = 1.0;  ///< share of a collective's bandwidth that tensor collectives reach in this stack
    Duration collective_skew;       ///< waiting for the slowest rank, per block and direction
    bool scatter_gather = false;    ///< tensor ranks send their slice of a message between stages, receivers gather it
    double exposed_bucket =
        1.0;  ///< with overlap: share of a chunk's gradients or parameters that finds nothing to hide behind
    double overlap_interference =
        0.0;                 ///< with overlap: time compute loses per time of gradient communication beside it
    double node_nics = 0.0;  ///< NICs that a group with several ranks a node drives where GPUs share NICs; 0: all
    double shared_nic_efficiency = 1.0;  ///< share of the bandwidth left where more groups than NICs use them at once

    // State.
    double gradient_bytes = 2.0;      ///< a gradient element, kept and reduced
    double accumulation_bytes = 6.0;  ///< moved per weight to add one micro-batch's gradient
    double optimizer_traffic = 28.0;  ///< bytes moved per parameter of a rank by the optimizer step
    bool operator==(const SoftwareStack&) const = default;
};

}  // namespace headway::scenarios
