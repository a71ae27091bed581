#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

/// What the driver of NVIDIA GPUs measures of a GPU by itself: NVML, found at run time. Nothing is linked.
namespace headway::backend {

/// One reading. What a GPU does not report is absent.
struct GpuReading {
    std::optional<double> temperature_c;
    std::optional<double> sm_clock_mhz;
    std::optional<double> power_w;
    std::optional<std::uint32_t> throttle_reasons;  ///< NVML bits, as in policies::RankMeasurement
    std::optional<std::int64_t> memory_used_bytes;  ///< of all processes
    std::optional<std::int64_t> memory_total_bytes;
};

/// The sensors of this machine's GPUs. A reading takes tens of microseconds to a few milliseconds and may be made from
/// any thread; it does not touch what runs on the GPU.
class GpuSensors {
  public:
    virtual ~GpuSensors() = default;
    virtual int count() const = 0;
    /// Of the GPU at this position on the PCI bus, "00000000:3B:00.0" (the text of cudaDeviceGetPCIBusId): CUDA and
    /// NVML number GPUs differently. -1 when there is none.
    virtual int find(const std::string& pci_bus_id) const = 0;
    virtual std::string name(int gpu) const = 0;
    /// A GPU that went away, or one out of range, gives an empty reading.
    virtual GpuReading read(int gpu) const = 0;
};

/// Null where this machine has no NVML: no complaint, since a machine without GPUs is none. `library` is opened by
/// dlopen.
std::unique_ptr<GpuSensors> open_gpu_sensors(const std::string& library = "libnvidia-ml.so.1");

}  // namespace headway::backend
