#include "backend/processors.h"

#include "backend/backend_error.h"
#include "backend/communicator/host_communicators.h"
#include "backend/cuda/cuda_module.h"
#include "backend/host/host_device.h"

namespace headway::backend {

Processors make_processors(const std::string& kind, Control& control, int device_number,
                           std::chrono::milliseconds timeout) {
    if (kind == "host") return {make_host_device(), std::make_unique<HostCommunicatorMaker>(control, timeout)};
    if (kind == "cuda") {
        CudaModule& module = cuda_module();
        Processors processors;
        processors.device = module.make_device(device_number, DataType::kBfloat16);
        processors.communicators = module.make_communicators(*processors.device, control, {timeout, false});
        return processors;
    }
    throw BackendError("processors '" + kind + "'", "unknown kind (host or cuda)");
}

}  // namespace headway::backend
