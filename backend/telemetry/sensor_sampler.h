#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "backend/telemetry/gpu_sensors.h"

namespace headway::backend {

/// Reads one GPU's sensors every 100 ms in a thread of its own, so that reading them costs an iteration nothing.
class SensorSampler {
  public:
    /// `pci_bus_id` as in GpuSensors::find. Without sensors, or such a GPU, all readings are empty.
    SensorSampler(std::unique_ptr<GpuSensors> sensors, const std::string& pci_bus_id);
    ~SensorSampler();
    SensorSampler(const SensorSampler&) = delete;
    SensorSampler& operator=(const SensorSampler&) = delete;

    GpuReading latest() const;

  private:
    void sample(int gpu);

    std::unique_ptr<GpuSensors> sensors_;
    mutable std::mutex mutex_;
    std::condition_variable ended_;
    bool ends_ = false;
    GpuReading latest_;
    std::thread thread_;
};

/// Temperature and clock of this machine's processor, as far as the kernel shows them (/sys); for ranks that run on it
/// as fast as they can. `root`: "/sys", or a copy of it in tests.
GpuReading read_host_sensors(const std::string& root = "/sys");

}  // namespace headway::backend
