#pragma once

#include <memory>

#include "backend/device/device.h"

namespace headway::backend {

/// A core of this machine as a device: BLAS on one thread and vectorised loops. Every call returns when it is done.
/// `type` is its working and accumulation type: kFloat32 trains, kFloat64 is the reference that others are held
/// against. Throws std::invalid_argument for another type.
std::unique_ptr<Device> make_host_device(DataType type = DataType::kFloat32);

}  // namespace headway::backend
