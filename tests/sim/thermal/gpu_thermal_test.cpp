#include "sim/thermal/gpu_thermal.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/sim/small_jobs.h"

namespace headway::sim {
namespace {

// plain_gpu: R 0.024 K/W at 0.7 s and 0.049 K/W at 43 s, twice that in a hot slot; boost 1500 MHz, 400 W, idle 60
// W, 2.3 MHz/K.
GpuThermal cool_slot() {
    return GpuThermal(tests::plain_gpu(), false);
}
GpuThermal hot_slot() {
    return GpuThermal(tests::plain_gpu(), true);
}

void run_for(const GpuThermal& gpu, GpuThermalState& state, const GpuSurroundings& around, double busy, int seconds) {
    for (int i = 0; i < seconds; ++i) gpu.advance(state, around, busy, 1.0);
}

TEST(GpuThermal, SettlesAtResistanceTimesPower) {
    const GpuThermal gpu = cool_slot();
    const GpuSurroundings around;
    GpuThermalState state;
    run_for(gpu, state, around, 1.0, 1000);
    const double power = gpu.power(gpu.clock(state, around), 1.0);
    EXPECT_NEAR(gpu.temperature(state, around), 25.0 + (0.024 + 0.049) * power, 0.01);
    const GpuThermalState end = gpu.equilibrium({}, around, 1.0);
    EXPECT_NEAR(end.slow_k, state.slow_k, 0.01);
    EXPECT_TRUE(gpu.settles(state, end, around));
}

TEST(GpuThermal, EachPoleApproachesWithItsOwnTimeConstant) {
    // At constant idle power both poles are plain exponentials, whatever the length of the steps.
    const GpuThermal gpu = cool_slot();
    GpuThermalState state;
    state.fast_k = 10.0;
    state.slow_k = 30.0;
    GpuThermalState halves = state;
    gpu.cool(state, {}, 20.0);
    for (int i = 0; i < 40; ++i) gpu.cool(halves, {}, 0.5);
    const double fast_end = 60.0 * 0.024, slow_end = 60.0 * 0.049;
    EXPECT_NEAR(state.fast_k, fast_end + (10.0 - fast_end) * std::exp(-20.0 / 0.7), 1e-9);
    EXPECT_NEAR(state.slow_k, slow_end + (30.0 - slow_end) * std::exp(-20.0 / 43.0), 1e-9);
    EXPECT_NEAR(halves.slow_k, state.slow_k, 1e-9);
}

TEST(GpuThermal, HotSlotsAreTenKelvinWarmerAtFourHundredWatts) {
    const GpuSurroundings around;
    const double cool = cool_slot().temperature(cool_slot().equilibrium({}, around, 1.0), around);
    const double hot = hot_slot().temperature(hot_slot().equilibrium({}, around, 1.0), around);
    EXPECT_GT(hot - cool, 10.0);
    EXPECT_LT(hot - cool, 25.0);
}

TEST(GpuThermal, HealthyNeverThrottlesForHeat) {
    const GpuThermal gpu = hot_slot();
    const GpuSurroundings around;
    GpuThermalState state;
    for (int i = 0; i < 3000; ++i) {
        gpu.advance(state, around, 1.0, 1.0);
        ASSERT_EQ(gpu.throttle_reasons(state, around) & ~kThrottlePowerCap, 0u) << "after " << i << " s";
    }
}

TEST(GpuThermal, PowerStaysWithinTheLimitAndTheClockFallsWithHeatThere) {
    const GpuThermal gpu = cool_slot();
    const GpuSurroundings cold{15.0, 1.0, 0.0}, warm{35.0, 1.0, 0.0};
    const GpuThermalState at_cold = gpu.equilibrium({}, cold, 1.0), at_warm = gpu.equilibrium({}, warm, 1.0);
    EXPECT_LE(gpu.power(gpu.clock(at_warm, warm), 1.0), 400.5);
    const double warming = gpu.temperature(at_warm, warm) - gpu.temperature(at_cold, cold);
    EXPECT_NEAR(gpu.clock(at_cold, cold) - gpu.clock(at_warm, warm), 2.3 * warming, 0.01);
    EXPECT_EQ(gpu.throttle_reasons(at_warm, warm), kThrottlePowerCap);
}

TEST(GpuThermal, APowerCapLowersTheClockByTheCubeRoot) {
    const GpuThermal gpu = cool_slot();
    EXPECT_NEAR(gpu.clock_at_limit(230.0) / gpu.clock_at_limit(400.0), std::cbrt((230.0 - 60.0) / (400.0 - 60.0)),
                1e-12);
    const GpuSurroundings capped{25.0, 1.0, 230.0};
    GpuThermalState state;
    run_for(gpu, state, capped, 1.0, 600);
    // Cooler than 60 C, so the leakage term gives a little back.
    EXPECT_NEAR(gpu.clock(state, capped), gpu.clock_at_limit(230.0) + 2.3 * (60.0 - gpu.temperature(state, capped)),
                1e-9);
}

TEST(GpuThermal, BlockedAirflowThrottlesInStepsAndHoldsBelowSlowdown) {
    const GpuThermal gpu = hot_slot();
    const GpuSurroundings healthy, blocked{25.0, 3.0, 0.0};
    GpuThermalState state = gpu.equilibrium({}, healthy, 1.0);
    const double before = gpu.clock(state, healthy);
    double hottest = 0.0;
    int last_steps = 0;
    for (int i = 0; i < 1200; ++i) {
        gpu.advance(state, blocked, 1.0, 1.0);
        hottest = std::max(hottest, gpu.temperature(state, blocked));
        ASSERT_LE(std::abs(state.slowdown_steps - last_steps), 1) << "one clock step a second";
        last_steps = state.slowdown_steps;
    }
    EXPECT_LT(gpu.clock(state, blocked), 0.95 * before);
    EXPECT_NE(gpu.throttle_reasons(state, blocked) & kThrottleSoftwareThermal, 0u);
    EXPECT_GT(hottest, 85.0);
    EXPECT_LT(hottest, 95.0) << "no shutdown";
    EXPECT_LE(gpu.temperature(state, blocked), 86.5);
    EXPECT_GE(gpu.temperature(state, blocked), 85.0 - 3.0 - 1.5) << "hysteresis";
}

TEST(GpuThermal, ClocksRecoverAfterTheAirflowDoes) {
    const GpuThermal gpu = hot_slot();
    const GpuSurroundings healthy, blocked{25.0, 3.0, 0.0};
    const GpuThermalState normal = gpu.equilibrium({}, healthy, 1.0);
    GpuThermalState state = normal;
    run_for(gpu, state, blocked, 1.0, 600);
    EXPECT_GT(state.slowdown_steps, 0);
    run_for(gpu, state, healthy, 1.0, 1000);
    EXPECT_EQ(state.slowdown_steps, 0);
    EXPECT_NEAR(gpu.clock(state, healthy), gpu.clock(normal, healthy), 0.1);
}

TEST(GpuThermal, HardwareSlowdownHalvesTheClockUntilFiveKelvinBelow) {
    const GpuThermal gpu = cool_slot();
    GpuThermalState state;
    state.slow_k = 66.0;  // 91 C and more
    const GpuSurroundings around;
    gpu.advance(state, around, 1.0, 0.001);
    EXPECT_TRUE(state.hardware_slowdown);
    EXPECT_LE(gpu.clock(state, around), 750.0);
    EXPECT_EQ(gpu.throttle_reasons(state, around) & (kThrottleHardware | kThrottleHardwareThermal), 0x48u);
    state.fast_k = 0.0;
    state.slow_k = 85.0 - 25.0;
    gpu.advance(state, around, 0.0, 0.001);
    EXPECT_TRUE(state.hardware_slowdown) << "85 C is not yet 5 K below 89 C";
    state.slow_k = 83.0 - 25.0;
    gpu.advance(state, around, 0.0, 0.001);
    EXPECT_FALSE(state.hardware_slowdown);
}

TEST(GpuThermal, ShutsDownAtItsLimit) {
    GpuThermalState state;
    state.slow_k = 69.9;
    EXPECT_FALSE(cool_slot().shuts_down(state, {}));
    state.slow_k = 70.0;
    EXPECT_TRUE(cool_slot().shuts_down(state, {}));
}

}  // namespace
}  // namespace headway::sim
