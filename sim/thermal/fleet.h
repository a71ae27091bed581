#pragma once

#include <memory>
#include <vector>

#include "scenarios/language/cluster.h"
#include "scenarios/language/units.h"
#include "sim/thermal/gpu_thermal.h"

/// Heat and clocks of all GPUs of a cluster over a run.
///
/// The reference of a GPU, which stands for a pace of exactly 1, is its clock in the equilibrium of the busiest GPU's
/// load with nothing around it out of the ordinary (inlet air of 25 C): costs were fitted to clusters in that state. A
/// GPU that is cooler is not given a pace above 1. An episode starts warm, every GPU in the state that the healthy job
/// has in the facility's own air: a warm facility is slower from the start.
///
/// Under load heat is integrated in steps of at most one second (one step an iteration where a GPU stays far from every
/// slowdown); the iteration runs at the mean clock of its steps. How
/// long the iteration takes depends on that clock, so it is first estimated from the last one (one fixed-point pass).
/// Only the first half hour of an iteration is followed; the rest of a longer one is like its end.
namespace headway::sim {

class Fleet {
  public:
    explicit Fleet(const scenarios::Cluster& cluster);

    struct HealthyPace {
        std::vector<double> pace;  ///< [GPUs]
        int shuts_down = -1;       ///< the first GPU that does not stand it
    };
    /// Pace of a job that has warmed up. `busy` as in `start`.
    HealthyPace healthy_pace(const std::vector<GpuSurroundings>& healthy, const std::vector<double>& busy) const;

    /// All GPUs warmed up by `busy` [GPUs, 0..1: share of the time that kernels run; below 0: not in the job].
    void start(const std::vector<GpuSurroundings>& healthy, const std::vector<double>& busy);

    /// Mean clock over the next `duration`, as pace relative to the reference, without moving on.
    std::vector<double> pace_over(const std::vector<GpuSurroundings>& around, const std::vector<double>& busy,
                                  scenarios::Duration duration);
    /// Moves on under load. Returns the GPUs that shut down.
    std::vector<int> advance(const std::vector<GpuSurroundings>& around, const std::vector<double>& busy,
                             scenarios::Duration duration);
    /// True when `advance` would change no GPU: all of the job's have arrived at the equilibrium of this load.
    bool at_rest(const std::vector<GpuSurroundings>& around, const std::vector<double>& busy) const;
    /// What `advance` does then.
    void rest(scenarios::Duration duration) { elapsed_s_ += duration.s(); }
    /// Moves on while the job stands still.
    void cool(const std::vector<GpuSurroundings>& around, scenarios::Duration duration);
    /// Another plan: the load from now on. What leaves the job rests from then on, what joins it has rested since; the
    /// reference becomes that of this load.
    void take_up(const std::vector<GpuSurroundings>& around, const std::vector<double>& busy);
    /// Another machine in the same place, at rest.
    void replace(int gpu, const GpuSurroundings& around);

    /// True when every GPU of the job has arrived at its equilibrium, so that clocks stay as they are.
    bool settled() const { return unsettled_ == 0; }

    double temperature_c(int gpu, const GpuSurroundings& around) const;
    double clock_mhz(int gpu, const GpuSurroundings& around) const;  ///< on the grid of clock steps
    double power_w(int gpu, const GpuSurroundings& around, double busy) const;
    std::uint32_t throttle_reasons(int gpu, const GpuSurroundings& around) const;
    double reference_mhz(int gpu) const { return reference_[static_cast<std::size_t>(gpu)]; }

  private:
    struct Settled {
        bool is = false;
        GpuSurroundings around;
        double busy = 0.0;
    };
    /// Where a load ends, with the slowdowns as they are.
    struct Equilibrium {
        GpuSurroundings around;
        double busy = 0.0;
        int steps = 0;
        bool hardware = false;
        GpuThermalState state;
    };
    struct Equilibria {
        std::vector<Equilibrium> known;
        std::size_t latest = 0;
        std::size_t oldest = 0;
    };
    /// What a constant load from rest ends in.
    struct Level {
        GpuThermalState state;
        double clock = 0.0;  ///< MHz, mean where slowdowns make it swing
        bool settled = true;
        bool shuts_down = false;
    };
    Level level_of(std::size_t gpu, const GpuSurroundings& around, double share) const;
    std::vector<Level> levels(const std::vector<GpuSurroundings>& around, const std::vector<double>& busy) const;
    std::vector<double> references(const std::vector<double>& busy) const;
    GpuThermalState equilibrium_of(std::size_t gpu, const GpuThermalState& state, const GpuSurroundings& around,
                                   double busy);
    /// Busy shares are taken in steps of 1/32, and only when they have moved by more than one: small changes of load
    /// from iteration to iteration (heat averages over them anyway) leave a settled GPU settled.
    double load_of(std::size_t gpu, double busy) const;
    std::vector<GpuThermal::Step> steps_of(double seconds) const;
    const GpuThermal& model(std::size_t gpu) const { return (*models_)[model_of_[gpu]]; }
    double clock_of(std::size_t gpu, const GpuSurroundings& around) const;

    std::shared_ptr<const std::vector<GpuThermal>> models_;  ///< per GPU type and slot kind
    std::vector<Equilibria> equilibria_;                     ///< [models]
    std::vector<std::size_t> model_of_;                      ///< [GPUs]
    std::vector<double> clock_step_;                         ///< [GPUs]
    std::vector<GpuThermalState> states_;                    ///< [GPUs]
    std::vector<Settled> settled_;                           ///< [GPUs]
    std::vector<double> reference_;                          ///< [GPUs] MHz
    std::vector<double> load_;                               ///< [GPUs] busy share that heats it
    double elapsed_s_ = 0.0;                                 ///< since the start
    std::vector<double> idle_since_s_;                       ///< [GPUs] of those outside the job
    int unsettled_ = 0;
};

}  // namespace headway::sim
