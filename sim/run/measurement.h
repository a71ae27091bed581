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
                                                 const std::vector<std::int64_t>& memory_of_worker) const;
    /// Bus bandwidth, as nccl-tests counts it, of each worker's tensor collectives (`tensor_bus` [workers]: when
    /// healthy), of each worker's activation sends and of each stage's gradient reductions in the given state. Fabric
    /// that is slow makes tensor collectives slow, a slow GPU does not.
    static std::vector<policies::GroupMeasurement> groups(const PlanModel& model, const ClusterState& state,
                                                          const std::vector<double>& tensor_bus);

  private:
    const scenarios::Plan& plan_;
    int count_ = 0;
    std::vector<double> compute_ns_;  ///< [ranks]
    std::vector<double> exposed_ns_;
    std::vector<double> idle_ns_;
};

/// [workers] Healthy bus bandwidth of a tensor group's all-reduce of the activations of one micro-batch (sequence
/// length / context x micro-batch x hidden values of 2 bytes; with sequence parallelism the reduce-scatter and the
/// all-gather of the same buffer together). Empty where tensor is 1.
std::vector<double> healthy_tensor_bus(const scenarios::Job& job, const scenarios::Cluster& cluster,
                                       const scenarios::Plan& plan);

}  // namespace headway::sim
