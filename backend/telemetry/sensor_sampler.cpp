#include "backend/telemetry/sensor_sampler.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

namespace headway::backend {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::milliseconds kSamplePeriod{100};

std::optional<double> number_in(const fs::path& file) {
    std::ifstream stream(file);
    double number = 0.0;
    if (!(stream >> number)) return std::nullopt;
    return number;
}

bool measures_a_processor(const fs::path& sensor) {
    std::string name;
    std::ifstream(sensor / "name") >> name;
    return name == "coretemp" || name == "k10temp" || name == "zenpower" || name == "cpu_thermal";
}

}  // namespace

SensorSampler::SensorSampler(std::unique_ptr<GpuSensors> sensors, const std::string& pci_bus_id)
    : sensors_(std::move(sensors)) {
    const int gpu = sensors_ ? sensors_->find(pci_bus_id) : -1;
    if (gpu < 0) return;
    latest_ = sensors_->read(gpu);
    thread_ = std::thread([this, gpu] { sample(gpu); });
}

SensorSampler::~SensorSampler() {
    {
        const std::lock_guard lock(mutex_);
        ends_ = true;
    }
    ended_.notify_all();
    if (thread_.joinable()) thread_.join();
}

GpuReading SensorSampler::latest() const {
    const std::lock_guard lock(mutex_);
    return latest_;
}

void SensorSampler::sample(int gpu) {
    std::unique_lock lock(mutex_);
    while (!ended_.wait_for(lock, kSamplePeriod, [&] { return ends_; })) {
        lock.unlock();
        const GpuReading reading = sensors_->read(gpu);
        lock.lock();
        latest_ = reading;
    }
}

GpuReading read_host_sensors(const std::string& root) {
    GpuReading reading;
    std::error_code none;  // a machine without sensors has no such folders
    for (const fs::directory_entry& sensor : fs::directory_iterator(fs::path(root) / "class/hwmon", none)) {
        if (!measures_a_processor(sensor.path())) continue;
        if (const auto millidegrees = number_in(sensor.path() / "temp1_input"))
            reading.temperature_c = *millidegrees / 1e3;
    }
    if (const auto khz = number_in(fs::path(root) / "devices/system/cpu/cpu0/cpufreq/scaling_cur_freq"))
        reading.sm_clock_mhz = *khz / 1e3;
    return reading;
}

}  // namespace headway::backend
