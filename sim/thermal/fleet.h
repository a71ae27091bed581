#pragma once

#include <vector>

#include "scenarios/language/cluster.h"
#include "scenarios/language/units.h"
#include "sim/thermal/gpu_thermal.h"

/// Heat and clocks of all GPUs of a cluster over a run.
///
/// An episode starts warm: every GPU in the equilibrium of the healthy job. The clock it has there, at the busiest GPU's load, is
/// the GPU's reference and stands for a pace of exactly 1; costs were fitted to clusters in that state. A GPU that is cooler
/// than that is not given a pace above 1.
///
/// Under load heat is integrated in steps of at most one second (one step an iteration where a GPU stays far from every
/// slowdown); the iteration runs at the mean clock of its steps. How
/// long the iteration takes depends on that clock, so it is first estimated from the last one (one fixed-point pass).
namespace headway::sim {

class Fleet {
  public:
    explicit Fleet(const scenarios::Cluster& cluster);

    /// All GPUs in the equilibrium of `busy` [GPUs, 0..1: share of the time that kernels run; below 0: not in the job].
    void start(const std::vector<GpuSurroundings>& healthy, const std::vector<double>& busy);

    /// Mean clock over the next `duration`, as pace relative to the reference, without moving on.
    std::vector<double> pace_over(const std::vector<GpuSurroundings>& around, const std::vector<double>& busy,
                                  scenarios::Duration duration);
    /// Moves on under load. Returns the GPUs that shut down.
    std::vector<int> advance(const std::vector<GpuSurroundings>& around, const std::vector<double>& busy,
                             scenarios::Duration duration);
    /// Moves on while the job stands still.
    void cool(const std::vector<GpuSurroundings>& around, scenarios::Duration duration);
    /// Another machine in the same place, at rest.
    void replace(int gpu, const GpuSurroundings& around);

    /// True when every GPU of the job has arrived at its equilibrium, so that clocks stay as they are.
    bool settled() const { return unsettled_ == 0; }

    double temperature_c(int gpu, const GpuSurroundings& around) const;
    double clock_mhz(int gpu, const GpuSurroundings& around) const;   ///< on the grid of clock steps
    double power_w(int gpu, const GpuSurroundings& around, double busy) const;
    std::uint32_t throttle_reasons(int gpu, const GpuSurroundings& around) const;
    double reference_mhz(int gpu) const { return reference_[static_cast<std::size_t>(gpu)]; }


  private:
    struct Settled {
        bool is = false;
        GpuSurroundings around;
        double busy = 0.0;
    };
    struct LastAnswer {
        bool is = false;
        GpuSurroundings around;
        double busy = 0.0;
        int steps = 0;
        bool hardware = false;
        GpuThermalState answer;
    };
    GpuThermalState equilibrium_of(std::size_t gpu, const GpuThermalState& state, const GpuSurroundings& around, double busy);
    /// Busy shares are taken in steps of 1/32, and only when they have moved by more than one: small changes of load from
    /// iteration to iteration (heat averages over them anyway) leave a settled GPU settled.
    double load_of(std::size_t gpu, double busy) const;
    std::vector<GpuThermal::Step> steps_of(double seconds) const;
    const GpuThermal& model(std::size_t gpu) const { return models_[model_of_[gpu]]; }
    double clock_of(std::size_t gpu, const GpuSurroundings& around) const;

    scenarios::Cluster cluster_;
    std::vector<GpuThermal> models_;         ///< per GPU type and slot kind
    std::vector<LastAnswer> last_answer_;    ///< [models]
    std::vector<std::size_t> model_of_;      ///< [GPUs]
    std::vector<double> clock_step_;         ///< [GPUs]
    std::vector<GpuThermalState> states_;    ///< [GPUs]
    std::vector<Settled> settled_;           ///< [GPUs]
    std::vector<double> reference_;          ///< [GPUs] MHz
    std::vector<double> load_;               ///< [GPUs] busy share that heats it
    int unsettled_ = 0;
};

}  // namespace headway::sim
