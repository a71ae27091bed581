#pragma once

#include <vector>

#include "policies/observation.h"
#include "policies/planning/last_seen.h"
#include "policies/planning/steady_value.h"
#include "scenarios/costs/iteration_costs.h"
#include "scenarios/language/cluster.h"

namespace headway::policies {

/// How fast every GPU is, from the compute times of a job's ranks.
///
/// A rank's time over what costs say is how much slower its GPU is. What a clock below the best one seen of its type
/// explains, slows arithmetic only; the rest slows arithmetic and memory alike (a neighbour on the GPU). What all ranks
/// have in common is the cost model's error or a slowdown of everything, in which there is nothing to rebalance: the
/// median rank counts as healthy unless it is much slower than the acceptance run lets expect, or a faster median was
/// seen before. Noise is judged by how much ranks differ from
/// one interval to the next (sensors, jitter, uneven sequences), and differences within noise are none.
class GpuPaces {
  public:
    explicit GpuPaces(const scenarios::Cluster& cluster);

    /// `model_error`: time of the healthy job over what costs say of it.
    void start_episode(double model_error = 1.0);
    /// `fabric` [nodes]: bandwidth inside each node over nominal; empty: all 1. `share` of the interval that was
    /// measured is in the state that counts: ranks that differ from the interval before do so in that part alone.
    /// Returns whether a pace changed by more than noise.
    bool update(const Observation& observation, const scenarios::IterationCosts& costs,
                const std::vector<double>& fabric, double share = 1.0);

    /// [GPUs] 1 for those never seen; fabrics are left at 1. Those that the job does not use stay as they were last,
    /// for as long as that is likely (last_seen.h).
    const std::vector<scenarios::GpuPace>& paces() const { return paces_; }
    int node_of(int gpu) const { return node_of_gpu_[static_cast<std::size_t>(gpu)]; }
    /// Deviation of one measurement, relative.
    double noise() const { return noise_; }

  private:
    struct Rank {
        int gpu = 0;
        scenarios::Work work;  ///< expected, an iteration
        double slow = 0.0;     ///< log of measured over expected; 0 where nothing was measured
        double own = 0.0;      ///< log of what its GPU takes by itself over what it takes when healthy
        bool measured = false;
        bool rough = false;  ///< told from a part of the interval
    };
    void read_ranks(const Observation& observation, const scenarios::IterationCosts& costs);
    void take_the_end(double share);
    void judge_noise();
    /// What GPUs take by themselves; and what those of a node, and all, have in common.
    void judge_gpus();
    double common(int node) const;
    double total(int gpu) const;
    void forget_replaced(const Observation& observation);
    void forget(std::size_t gpu);
    bool forget_what_is_long_ago(Duration now);
    scenarios::GpuPace pace_of(const Rank& rank, double slow, double clock, double fabric) const;

    std::vector<int> type_of_gpu_, node_of_gpu_;
    std::vector<scenarios::GpuPace> paces_;
    std::vector<SteadyValue> slow_of_node_;  ///< [nodes] the middle one of its ranks, over that of all
    SteadyValue slow_of_all_;
    std::vector<std::vector<double>> by_node_;  ///< scratch
    std::vector<SteadyValue> slow_;             ///< [GPUs] over what its node has in common
    std::vector<double> known_slow_;            ///< [GPUs] log of how slow it is taken to be
    std::vector<double> last_slow_;             ///< [GPUs] against the median, of the update before; NaN: not measured
    std::vector<double> clock_;                 ///< [GPUs] as last used
    std::vector<double> best_clock_;            ///< [types]
    LastSeen seen_;                             ///< [GPUs]
    std::vector<char> was_unavailable_;         ///< [GPUs]
    std::vector<Rank> ranks_;
    std::vector<double> before_;  ///< [ranks] `slow` of the update before under this plan; NaN: not measured
    std::vector<double> scratch_;
    scenarios::Plan plan_;
    bool has_baseline_ = false;
    double baseline_ = 0.0;  ///< log of what all ranks take over what costs say
    double usual_median_ = 0.0;
    double noise_ = 0.0, sure_noise_ = 0.0;
    int judged_ = 0;
};

}  // namespace headway::policies
