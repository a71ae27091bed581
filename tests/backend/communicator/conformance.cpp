#include "tests/backend/communicator/conformance.h"

#include "backend/communicator/host_communicators.h"
#include "backend/host/host_device.h"

namespace headway::backend {

const std::vector<CommunicatorKind>& communicator_kinds() {
    static const std::vector<CommunicatorKind> kinds = {
        {"host",
         8,
         {DataType::kFloat32, DataType::kFloat64, DataType::kInt32},
         [] { return std::string(); },
         [](Control& control, std::chrono::milliseconds timeout) {
             return Processors{make_host_device(), std::make_unique<HostCommunicatorMaker>(control, timeout)};
         }},
    };
    return kinds;
}

}  // namespace headway::backend
