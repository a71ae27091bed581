#include "backend/telemetry/sensor_sampler.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

namespace headway::backend {
namespace {

class WarmingGpu final : public GpuSensors {
  public:
    explicit WarmingGpu(std::atomic<int>& readings) : readings_(readings) {}
    int count() const override { return 2; }
    int find(const std::string& pci_bus_id) const override { return pci_bus_id == "second" ? 1 : -1; }
    std::string name(int) const override { return "fake"; }
    GpuReading read(int gpu) const override {
        GpuReading reading;
        reading.temperature_c = 40.0 + gpu + ++readings_;
        return reading;
    }

  private:
    std::atomic<int>& readings_;
};

TEST(SensorSampler, ReadsItsGpuAgainAndAgain) {
    std::atomic<int> readings{0};
    const SensorSampler sampler(std::make_unique<WarmingGpu>(readings), "second");
    EXPECT_GE(sampler.latest().temperature_c.value_or(0.0), 42.0) << "at once";
    for (int i = 0; i < 200 && readings < 3; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_GE(readings, 3);
    EXPECT_FALSE(sampler.latest().power_w);
}

TEST(SensorSampler, IsEmptyWithoutSensorsOrSuchAGpu) {
    std::atomic<int> readings{0};
    EXPECT_FALSE(SensorSampler(nullptr, "second").latest().temperature_c);
    EXPECT_FALSE(SensorSampler(std::make_unique<WarmingGpu>(readings), "third").latest().temperature_c);
    EXPECT_EQ(readings, 0);
}

TEST(HostSensors, AreThoseThatTheKernelShows) {
    const auto root = std::filesystem::temp_directory_path() / ("headway-sys-" + std::to_string(::getpid()));
    const auto write = [&](const std::string& name, const std::string& text) {
        std::filesystem::create_directories((root / name).parent_path());
        std::ofstream(root / name) << text << "\n";
    };
    write("class/hwmon/hwmon0/name", "nvme");
    write("class/hwmon/hwmon0/temp1_input", "99000");
    EXPECT_FALSE(read_host_sensors(root).temperature_c) << "a disk is no processor";
    write("class/hwmon/hwmon1/name", "k10temp");
    write("class/hwmon/hwmon1/temp1_input", "61500");
    write("devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "3200000");
    const GpuReading reading = read_host_sensors(root);
    EXPECT_EQ(reading.temperature_c, 61.5);
    EXPECT_EQ(reading.sm_clock_mhz, 3200.0);
    EXPECT_FALSE(reading.power_w);
    std::filesystem::remove_all(root);
    EXPECT_FALSE(read_host_sensors(root).temperature_c);
}

}  // namespace
}  // namespace headway::backend
