#pragma once

#include <string>

#include "scenarios/language/units.h"

namespace headway::scenarios {

/// A training stack and its age: what the software adds to, or saves on, the hardware's own time. One profile serves every
/// table and scenario that names the stack. Values and their sources are in scenarios/stacks/.
struct SoftwareStack {
  std::string name;
  bool flash_attention = false;      ///< fused attention: no sequence x sequence matrix in memory
  bool fused_kernels = true;         ///< bias-GELU, softmax-mask and bias-dropout-add run as one kernel each
  Duration kernel_launch;            ///< time one kernel takes at least, and the host spends to launch it
  double tensor_overlap = 0.0;       ///< share of tensor communication hidden behind GEMMs where overlap is asked for (0..1)
  bool operator==(const SoftwareStack&) const = default;
};

}  // namespace headway::scenarios
