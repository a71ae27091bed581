#include "tests/backend/communicator/conformance.h"

#include <map>

#include "backend/communicator/host_communicators.h"
#include "backend/host/host_device.h"

namespace headway::backend {

namespace {

const std::vector<DataType> kReducedTypes = {DataType::kFloat32, DataType::kFloat64, DataType::kInt32};

Processors processors_of(const std::string& kind, Control& control, std::chrono::milliseconds timeout) {
    return make_processors(kind, control, control.rank(), timeout);
}

/// A device of CUDA for each of `size` ranks. Looked for in another process, since this one has yet to fork.
std::string missing_cuda_devices(int size) {
    static std::map<int, std::string> found;
    const auto known = found.find(size);
    if (known != found.end()) return known->second;
    const auto outcomes = rank_outcomes(1, [&](LocalRank& local) {
        make_processors("cuda", local.control, size - 1, std::chrono::milliseconds(10'000));
        return std::string();
    });
    return found[size] = outcomes[0].error;
}

}  // namespace

const std::vector<CommunicatorKind>& communicator_kinds() {
    static const std::vector<CommunicatorKind> kinds = {
        {"host", kReducedTypes, [](int) { return std::string(); },
         [](Control& control, std::chrono::milliseconds timeout) { return processors_of("host", control, timeout); }},
        {"network", kReducedTypes, [](int) { return std::string(); },
         [](Control& control, std::chrono::milliseconds timeout) {
             return Processors{make_host_device(), std::make_unique<HostCommunicatorMaker>(
                                                       control, timeout, HostCommunicatorMaker::Through::kNetwork)};
         }},
        {"cuda", kReducedTypes, missing_cuda_devices,
         [](Control& control, std::chrono::milliseconds timeout) { return processors_of("cuda", control, timeout); }},
    };
    return kinds;
}

}  // namespace headway::backend
