#include "backend/telemetry/gpu_sensors.h"

#include <gtest/gtest.h>

namespace headway::tests {
namespace {

TEST(GpuSensors, AreAbsentWithoutComplaintWhereThereIsNoLibrary) {
    EXPECT_EQ(backend::open_gpu_sensors("libno-such-nvml.so.1"), nullptr);
}

TEST(GpuSensors, ReadWhatTheDriverMeasuresInItsUnits) {
    const auto sensors = backend::open_gpu_sensors(HEADWAY_FAKE_NVML);
    ASSERT_NE(sensors, nullptr);
    ASSERT_EQ(sensors->count(), 2);
    const backend::GpuReading reading = sensors->read(0);
    EXPECT_EQ(sensors->name(0), "Fake GPU");
    EXPECT_EQ(reading.temperature_c, 60.0);
    EXPECT_EQ(reading.sm_clock_mhz, 1980.0);
    EXPECT_DOUBLE_EQ(reading.power_w.value(), 412.5);
    EXPECT_EQ(reading.throttle_reasons, 0x20u) << "by the name that older drivers have";
    EXPECT_EQ(reading.memory_used_bytes, 41'000'000'000);
    EXPECT_EQ(reading.memory_total_bytes, 141'000'000'000);
}

TEST(GpuSensors, LeaveOutWhatAGpuDoesNotReport) {
    const auto sensors = backend::open_gpu_sensors(HEADWAY_FAKE_NVML);
    ASSERT_NE(sensors, nullptr);
    EXPECT_FALSE(sensors->read(1).power_w.has_value());
    EXPECT_EQ(sensors->read(1).temperature_c, 70.0);
    EXPECT_FALSE(sensors->read(2).temperature_c.has_value()) << "out of range";
    EXPECT_FALSE(sensors->read(-1).temperature_c.has_value());
}

TEST(GpuSensors, FindAGpuByItsPlaceOnTheBus) {
    const auto sensors = backend::open_gpu_sensors(HEADWAY_FAKE_NVML);
    ASSERT_NE(sensors, nullptr);
    EXPECT_EQ(sensors->find("00000000:3B:00.0"), 1);
    EXPECT_EQ(sensors->find("00000000:FF:00.0"), -1);
}

}  // namespace
}  // namespace headway::tests
