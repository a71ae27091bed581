#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "backend/communicator/communicator.h"
#include "backend/device/device.h"
#include "backend/device/occupier.h"

/// CUDA, cuBLAS and NCCL are a library of their own, libheadway_cuda.so, which a process opens when it wants a GPU:
/// loading them takes a third of a second and 220 MB, which no other command should pay. This is the door.
namespace headway::backend {

struct CommunicatorOptions {
    std::chrono::milliseconds timeout{60'000};  ///< a member that stays away longer is lost
    bool single_too = false;                    ///< a group of one goes through NCCL as well (for tests of NCCL)
};

class CudaModule {
  public:
    virtual ~CudaModule() = default;
    /// Why there is no usable GPU, "no driver" say; empty when there is one.
    virtual std::string absence() = 0;
    virtual int device_count() = 0;
    /// `working_type`: kBfloat16 trains, kFloat32 (without TF32) is for comparisons. Throws BackendError.
    virtual std::unique_ptr<Device> make_device(int number, DataType working_type) = 0;
    /// `device` is one of make_device; it and `control` outlive the communicators.
    virtual std::unique_ptr<CommunicatorMaker> make_communicators(Device& device, Control& control,
                                                                  const CommunicatorOptions& options) = 0;
    virtual std::unique_ptr<Occupier> make_occupier(Device& device) = 0;
    /// Position of a device on the PCI bus, as GpuSensors::find takes it.
    virtual std::string pci_bus_id(int number) = 0;
};

/// Of the interface above: program and library are of one build.
inline constexpr int kCudaModuleVersion = 1;

/// The module, opened at the first call and never closed. Throws BackendError "no CUDA device: ..." when this build has
/// none or this machine has no usable GPU; a later call tries again.
CudaModule& cuda_module();

}  // namespace headway::backend
