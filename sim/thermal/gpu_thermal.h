#pragma once

#include <cstdint>

#include "scenarios/language/hardware.h"

/// Temperature, power and clock of one GPU as a function of its load, its cooling and its power limit.
///
/// Heat: two-pole model, T = inlet + R_fast lowpass(P, tau_fast) + R_slow lowpass(P, tau_slow), each pole integrated
/// exactly over a step of constant power. R_slow is that of the slot (hot slots 0, 3, 4, 7: `hot_slot_factor`) times
/// the airflow factor. Power while kernels run: idle + f(clock), f(clock) = (limit - idle) * kFullLoad * (clock /
/// boost)^3: voltage follows clock in the upper range. kFullLoad = 1.3 (assumed) makes a full load meet the board's own
/// limit at 0.916 of the boost clock, as measured under GEMM on H800 SXM (1725 to 1845 of 1980 MHz). While a rank waits
/// it spins at kWaitingShare of f (assumed). Clock: the lowest of boost, what the power limit allows, and the thermal
/// slowdowns. At the power limit it falls by `clock_loss_mhz_per_kelvin` from 60 C on (2.3 to 3.5 MHz/K measured on
/// H100, 1.7 on V100): the average between two clock steps, since the driver alternates between them. Software thermal
/// slowdown: above `max_operating` one clock step down each second, 3 K below it one step up each second. Hardware
/// slowdown: above `slowdown` the clock is halved until 5 K below it. At `shutdown` the GPU is lost.
namespace headway::sim {

/// NVML's clock event reasons.
inline constexpr std::uint32_t kThrottlePowerCap = 0x4;
inline constexpr std::uint32_t kThrottleHardware = 0x8;
inline constexpr std::uint32_t kThrottleSoftwareThermal = 0x20;
inline constexpr std::uint32_t kThrottleHardwareThermal = 0x40;

/// What acts on a GPU from outside.
struct GpuSurroundings {
    double inlet_c = 25.0;
    double resistance_factor = 1.0;  ///< of the slow pole
    double power_limit_w = 0.0;      ///< 0: the board's own
    bool operator==(const GpuSurroundings&) const = default;
};

struct GpuThermalState {
    double fast_k = 0.0;  ///< rise of the fast pole over the inlet
    double slow_k = 0.0;
    int slowdown_steps = 0;  ///< of the software thermal slowdown
    bool hardware_slowdown = false;
    double controller_s = 0.0;  ///< since the software slowdown last acted
    bool operator==(const GpuThermalState&) const = default;
};

class GpuThermal {
  public:
    GpuThermal(const scenarios::GpuType& type, bool hot_slot);

    double temperature(const GpuThermalState& state, const GpuSurroundings& around) const {
        return around.inlet_c + state.fast_k + state.slow_k;
    }
    /// SM clock in MHz at a temperature.
    double clock(const GpuThermalState& state, const GpuSurroundings& around) const;
    /// Mean power in W with kernels running `busy` (0..1) of the time and waiting for the rest.
    double power(double clock_mhz, double busy) const;
    double idle_power() const { return type_.idle_power.value; }
    std::uint32_t throttle_reasons(const GpuThermalState& state, const GpuSurroundings& around) const;
    bool shuts_down(const GpuThermalState& state, const GpuSurroundings& around) const;

    /// What a step of this length does to the two poles.
    struct Step {
        double seconds = 0.0;
        double fast = 0.0;  ///< share of the way to its end that each pole goes
        double slow = 0.0;
    };
    Step step(double seconds) const;
    /// One step of at most a second under load; returns the clock during it.
    double advance(GpuThermalState& state, const GpuSurroundings& around, double busy, const Step& step) const;
    double advance(GpuThermalState& state, const GpuSurroundings& around, double busy, double seconds) const {
        return advance(state, around, busy, step(seconds));
    }
    /// Any time without load.
    void cool(GpuThermalState& state, const GpuSurroundings& around, double seconds) const;
    /// The state that a constant load ends in, with the slowdowns of `state` as they are.
    GpuThermalState equilibrium(const GpuThermalState& state, const GpuSurroundings& around, double busy) const;
    /// Within 0.02 K of `equilibrium`, and no slowdown about to change there.
    bool settles(const GpuThermalState& state, const GpuThermalState& equilibrium, const GpuSurroundings& around) const;

    /// On its way from `state` to `equilibrium` it stays out of reach of every slowdown (5 K below the first), so that
    /// only the slow drift of its power matters and long steps do.
    bool calm(const GpuThermalState& state, const GpuThermalState& equilibrium, const GpuSurroundings& around) const;
    /// Lowest clock on that way, of a calm GPU.
    double lowest_clock(const GpuThermalState& state, const GpuThermalState& equilibrium,
                        const GpuSurroundings& around) const;

    /// Highest clock within the power limit at 60 C.
    double clock_at_limit(double power_limit_w) const;

  private:
    static double hottest_between(const GpuThermalState& state, const GpuThermalState& end,
                                  const GpuSurroundings& around);
    double clock_at(double temperature_c, const GpuThermalState& state, const GpuSurroundings& around) const;
    double slow_resistance(const GpuSurroundings& around) const { return slow_resistance_ * around.resistance_factor; }
    bool about_to_change(const GpuThermalState& state, double temperature_c) const;

    scenarios::GpuType type_;
    double slow_resistance_ = 0.0;
    double dynamic_w_ = 0.0;  ///< at boost, full load
    double clock_at_own_limit_ = 0.0;
};

}  // namespace headway::sim
