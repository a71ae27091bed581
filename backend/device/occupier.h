#pragma once

#include "scenarios/language/units.h"

namespace headway::backend {

/// Slows a device down by keeping a part of it busy beside what runs there, as a co-tenant would.
class Occupier {
  public:
    virtual ~Occupier() = default;  ///< releases
    /// From now on for `time`, or until release(), `share` (0 to 1) of the device's processors does something else; the
    /// last call holds. Returns at once. What is compute-bound then takes about 1 / (1 - share) times as long. At least
    /// one processor is left. Throws std::invalid_argument for a share outside [0, 1), BackendError.
    virtual void occupy(double share, scenarios::Duration time) = 0;
    /// Returns when the device is free again.
    virtual void release() = 0;
};

}  // namespace headway::backend
