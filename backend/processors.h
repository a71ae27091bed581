#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "backend/communicator/communicator.h"
#include "backend/device/device.h"

namespace headway::backend {

/// What one process trains on: its device, and how such devices talk.
struct Processors {
    std::unique_ptr<Device> device;
    std::unique_ptr<CommunicatorMaker> communicators;  ///< uses `control` and the device, which outlive it
};

/// `kind`: "host" (float32, one thread) or "cuda" (bfloat16; device = process on its node). Throws BackendError saying
/// "no CUDA device: ..." and why, or that this build has no CUDA.
Processors make_processors(const std::string& kind, Control& control, int device_number,
                           std::chrono::milliseconds timeout);

}  // namespace headway::backend
