#include "sim/thermal/gpu_thermal.h"

#include <algorithm>
#include <cmath>

namespace headway::sim {
namespace {

constexpr double kFullLoad = 1.3;
constexpr double kWaitingShare = 0.25;
constexpr double kReferenceTemperature = 60.0;
constexpr double kSoftwareHysteresis = 3.0;
constexpr double kHardwareHysteresis = 5.0;
constexpr double kControllerPeriod = 1.0;  // s
constexpr double kCalmDistance = 5.0;      // K
constexpr double kSettled = 0.02;          // K

double share_reached(double seconds, double time_constant) {
    return time_constant > 0.0 ? 1.0 - std::exp(-seconds / time_constant) : 1.0;
}

}  // namespace

GpuThermal::GpuThermal(const scenarios::GpuType& type, bool hot_slot)
    : type_(type),
      slow_resistance_(type.thermal.slow_resistance.value * (hot_slot ? type.thermal.hot_slot_factor : 1.0)),
      dynamic_w_(std::max(0.0, type.power_limit.value - type.idle_power.value) * kFullLoad) {
    clock_at_own_limit_ = clock_at_limit(type.power_limit.value);
}

GpuThermal::Step GpuThermal::step(double seconds) const {
    return {seconds, share_reached(seconds, type_.thermal.fast_time.s()),
            share_reached(seconds, type_.thermal.slow_time.s())};
}

double GpuThermal::clock_at_limit(double power_limit_w) const {
    if (dynamic_w_ <= 0.0) return type_.boost_clock.value;
    const double share = std::max(0.0, power_limit_w - type_.idle_power.value) / dynamic_w_;
    return type_.boost_clock.value * std::cbrt(share);
}

double GpuThermal::clock_at(double temperature_c, const GpuThermalState& state, const GpuSurroundings& around) const {
    const double at_limit = around.power_limit_w > 0.0 ? clock_at_limit(around.power_limit_w) : clock_at_own_limit_;
    double clock = at_limit - type_.thermal.clock_loss_mhz_per_kelvin * (temperature_c - kReferenceTemperature);
    clock = std::min(clock, type_.boost_clock.value);
    // Slowdowns count down from the highest clock of the healthy board, so that the first step bites.
    const double start = std::min(clock_at_own_limit_, type_.boost_clock.value);
    if (state.slowdown_steps > 0) clock = std::min(clock, start - state.slowdown_steps * type_.clock_step.value);
    if (state.hardware_slowdown) clock = std::min(clock, type_.boost_clock.value) * 0.5;
    return std::max(clock, type_.min_clock.value);
}

double GpuThermal::clock(const GpuThermalState& state, const GpuSurroundings& around) const {
    return clock_at(temperature(state, around), state, around);
}

double GpuThermal::power(double clock_mhz, double busy) const {
    const double ratio = clock_mhz / type_.boost_clock.value;
    return type_.idle_power.value + dynamic_w_ * ratio * ratio * ratio * (busy + (1.0 - busy) * kWaitingShare);
}

std::uint32_t GpuThermal::throttle_reasons(const GpuThermalState& state, const GpuSurroundings& around) const {
    std::uint32_t reasons = 0;
    GpuThermalState unthrottled = state;
    unthrottled.slowdown_steps = 0;
    unthrottled.hardware_slowdown = false;
    if (state.hardware_slowdown) reasons |= kThrottleHardware | kThrottleHardwareThermal;
    if (state.slowdown_steps > 0) reasons |= kThrottleSoftwareThermal;
    if (reasons == 0 && clock(unthrottled, around) < type_.boost_clock.value) reasons |= kThrottlePowerCap;
    return reasons;
}

bool GpuThermal::shuts_down(const GpuThermalState& state, const GpuSurroundings& around) const {
    return temperature(state, around) >= type_.thermal.shutdown.value;
}

double GpuThermal::advance(GpuThermalState& state, const GpuSurroundings& around, double busy, const Step& step) const {
    const double clock_now = clock(state, around);
    const double watts = power(clock_now, busy);
    const scenarios::Thermal& thermal = type_.thermal;
    state.fast_k += (watts * thermal.fast_resistance.value - state.fast_k) * step.fast;
    state.slow_k += (watts * slow_resistance(around) - state.slow_k) * step.slow;

    const double now_c = temperature(state, around);
    if (now_c > thermal.slowdown.value) state.hardware_slowdown = true;
    if (now_c < thermal.slowdown.value - kHardwareHysteresis) state.hardware_slowdown = false;
    state.controller_s += step.seconds;
    const int lowest =
        static_cast<int>((type_.boost_clock.value - type_.min_clock.value) / std::max(1.0, type_.clock_step.value));
    double acts = std::floor(state.controller_s / kControllerPeriod);
    state.controller_s -= acts * kControllerPeriod;
    for (acts = std::min(acts, lowest + 1.0); acts > 0.0; acts -= 1.0) {
        if (now_c > thermal.max_operating.value && state.slowdown_steps < lowest) ++state.slowdown_steps;
        if (now_c < thermal.max_operating.value - kSoftwareHysteresis && state.slowdown_steps > 0)
            --state.slowdown_steps;
    }
    return clock_now;
}

void GpuThermal::cool(GpuThermalState& state, const GpuSurroundings& around, double seconds) const {
    const scenarios::Thermal& thermal = type_.thermal;
    const double watts = type_.idle_power.value;
    const Step whole = step(seconds);
    state.fast_k += (watts * thermal.fast_resistance.value - state.fast_k) * whole.fast;
    state.slow_k += (watts * slow_resistance(around) - state.slow_k) * whole.slow;
    const double now_c = temperature(state, around);
    if (now_c < thermal.slowdown.value - kHardwareHysteresis) state.hardware_slowdown = false;
    if (now_c < thermal.max_operating.value - kSoftwareHysteresis)
        state.slowdown_steps = std::max(0, state.slowdown_steps - static_cast<int>(seconds / kControllerPeriod));
    state.controller_s = 0.0;
}

GpuThermalState GpuThermal::equilibrium(const GpuThermalState& state, const GpuSurroundings& around,
                                        double busy) const {
    // The clock falls with temperature and the temperature rises with the clock: one solution, found by bisection.
    const double resistance = type_.thermal.fast_resistance.value + slow_resistance(around);
    double low = type_.min_clock.value;
    double high = type_.boost_clock.value;
    const auto allowed = [&](double clock_mhz) {
        return clock_at(around.inlet_c + resistance * power(clock_mhz, busy), state, around);
    };
    if (allowed(high) >= high) {
        low = high;
    } else {
        for (int i = 0; i < 60 && low < high; ++i) {
            const double middle = 0.5 * (low + high);
            if (allowed(middle) >= middle)
                low = middle;
            else
                high = middle;
        }
    }
    GpuThermalState result = state;
    result.fast_k = power(low, busy) * type_.thermal.fast_resistance.value;
    result.slow_k = power(low, busy) * slow_resistance(around);
    result.controller_s = 0.0;
    return result;
}

double GpuThermal::hottest_between(const GpuThermalState& state, const GpuThermalState& end,
                                   const GpuSurroundings& around) {
    return around.inlet_c + std::max(state.fast_k, end.fast_k) + std::max(state.slow_k, end.slow_k);
}

bool GpuThermal::calm(const GpuThermalState& state, const GpuThermalState& equilibrium,
                      const GpuSurroundings& around) const {
    const double nearest = std::min(type_.thermal.max_operating.value, type_.thermal.slowdown.value);
    return state.slowdown_steps == 0 && !state.hardware_slowdown &&
           hottest_between(state, equilibrium, around) < nearest - kCalmDistance;
}

double GpuThermal::lowest_clock(const GpuThermalState& state, const GpuThermalState& equilibrium,
                                const GpuSurroundings& around) const {
    return clock_at(hottest_between(state, equilibrium, around), state, around);
}

bool GpuThermal::about_to_change(const GpuThermalState& state, double temperature_c) const {
    const scenarios::Thermal& thermal = type_.thermal;
    if (temperature_c > thermal.max_operating.value || temperature_c > thermal.slowdown.value) return true;
    if (state.slowdown_steps > 0 && temperature_c < thermal.max_operating.value - kSoftwareHysteresis) return true;
    return state.hardware_slowdown && temperature_c < thermal.slowdown.value - kHardwareHysteresis;
}

bool GpuThermal::settles(const GpuThermalState& state, const GpuThermalState& equilibrium,
                         const GpuSurroundings& around) const {
    return std::abs(state.fast_k - equilibrium.fast_k) < kSettled &&
           std::abs(state.slow_k - equilibrium.slow_k) < kSettled &&
           !about_to_change(state, temperature(equilibrium, around));
}

}  // namespace headway::sim
