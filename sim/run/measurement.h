#pragma once

#include <cstdint>
#include <vector>

#include "policies/training_cluster.h"
#include "sim/iteration/plan_model.h"
#include "sim/thermal/fleet.h"

namespace headway::sim {

/// Averages over the iterations of one `run` what a real cluster would measure of them.
class MeasurementAverage {
  public:
    /// Keeps a reference to the plan.
    explicit MeasurementAverage(const scenarios::Plan& plan);

    /// `pace` [GPUs] compute speed of each GPU in this iteration, `iterations` alike.
    void add(const IterationTimes& times, const std::vector<double>& pace, int iterations = 1);
    bool empty() const { return count_ == 0; }

    /// Ranks of the plan; sensors as they read now. A rank's compute is its own kernels: in a worker, the faster ranks
    /// wait for the slowest in the tensor collectives, which counts as exposed communication.
    std::vector<policies::RankMeasurement> ranks(const Fleet& fleet, const Environment& environment,
                                                 const std::vector<double>& busy,
                                                 const std::vector<std::int64_t>& memory_of_stage) const;
    /// Bus bandwidth of gradient reductions and of pipeline sends in the given state.
    static std::vector<policies::GroupMeasurement> groups(const PlanModel& model, const ClusterState& state);

  private:
    const scenarios::Plan& plan_;
    int count_ = 0;
    std::vector<double> compute_ns_;  ///< [ranks]
    std::vector<double> exposed_ns_;
    std::vector<double> idle_ns_;
};

}  // namespace headway::sim
