#include "backend/processors.h"

#include "backend/backend_error.h"
#include "backend/communicator/host_communicators.h"
#include "backend/host/host_device.h"

namespace headway::backend {

Processors make_processors(const std::string& kind, Control& control, [[maybe_unused]] int device_number,
                           std::chrono::milliseconds timeout) {
    if (kind == "host") return {make_host_device(), std::make_unique<HostCommunicatorMaker>(control, timeout)};
    if (kind == "cuda") throw BackendError("no CUDA device", "this build has no CUDA");
    throw BackendError("processors '" + kind + "'", "unknown kind (host or cuda)");
}

}  // namespace headway::backend
