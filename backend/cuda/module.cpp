#include <cuda_runtime.h>

#include <array>
#include <cstdlib>

#include "backend/cuda/availability.h"
#include "backend/cuda/cuda_device.h"
#include "backend/cuda/cuda_module.h"
#include "backend/cuda/cuda_occupier.h"
#include "backend/cuda/nccl_communicators.h"

namespace headway::backend {

namespace {

/// Devices come from this library alone, so each is a CudaDevice.
CudaDevice& cuda_device(Device& device) {
    return dynamic_cast<CudaDevice&>(device);
}

class LoadedCudaModule final : public CudaModule {
  public:
    LoadedCudaModule() {
        // Every communicator has a stream, and streams that share a hardware queue wait for each other: as many queues
        // as there are. Read when CUDA starts, which the next call makes it do.
        setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    }

    std::string absence() override {
        int devices = 0, driver = 0;
        const cudaError_t code = cudaGetDeviceCount(&devices);
        cudaDriverGetVersion(&driver);
        cudaGetLastError();
        return cuda_absence(static_cast<int>(code), cudaGetErrorString(code), driver, devices);
    }
    int device_count() override {
        int devices = 0;
        cuda::check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
        return devices;
    }
    std::unique_ptr<Device> make_device(int number, DataType working_type) override {
        if (number < 0 || number >= device_count()) {
            throw BackendError("no CUDA device", "number " + std::to_string(number) +
                                                     " was asked for, this machine has " +
                                                     std::to_string(device_count()));
        }
        return std::make_unique<CudaDevice>(number, working_type);
    }
    std::unique_ptr<CommunicatorMaker> make_communicators(Device& device, Control& control,
                                                          const CommunicatorOptions& options) override {
        return std::make_unique<NcclCommunicatorMaker>(cuda_device(device), control, options);
    }
    std::unique_ptr<Occupier> make_occupier(Device& device) override {
        return std::make_unique<CudaOccupier>(cuda_device(device));
    }
    std::string pci_bus_id(int number) override {
        std::array<char, 32> text{};
        cuda::check(cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), number), "cudaDeviceGetPCIBusId");
        return text.data();
    }
};

}  // namespace

}  // namespace headway::backend

extern "C" {

__attribute__((visibility("default"))) int headway_cuda_module_version() {
    return headway::backend::kCudaModuleVersion;
}

__attribute__((visibility("default"))) headway::backend::CudaModule* headway_cuda_module() {
    static headway::backend::LoadedCudaModule module;
    return &module;
}
}
