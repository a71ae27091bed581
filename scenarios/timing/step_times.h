#pragma once

#include <vector>

#include "scenarios/costs/iteration_costs.h"
#include "scenarios/timing/durations.h"

namespace headway::scenarios {

/// State of everything that can be slow, during one iteration. Empty vectors mean healthy.
struct Conditions {
    std::vector<GpuPace> gpus;               ///< [cluster GPUs]
    std::vector<double> node_network;        ///< [nodes] NIC bandwidth over nominal
    std::vector<double> rack_uplink;         ///< [racks] bandwidth between leaf and spine over nominal
    std::vector<Duration> node_delay;        ///< [nodes] added to every message a NIC of the node sends
    std::vector<Duration> hop_delay;         ///< [pipeline - 1] added to every send between stages k and k+1
    std::vector<double> micro_batch_factor;  ///< as in StepTimes
    bool operator==(const Conditions&) const = default;
};

/// Puts costs and conditions together, without contention:
/// - a worker runs at the pace of its slowest member, since its tensor and context ranks work in lock step; where it
/// spans
///   nodes, its own communication also waits for the slowest NIC;
/// - a message between two workers takes as long as the slowest of its ranks' parts: inside a node over the fabric,
/// elsewhere
///   over the NICs, between racks over the uplinks too; the host's overhead does not stretch with a slow link;
/// - a collective runs at the pace of its slowest link; a delay of a node's messages counts once for every node and
/// pass of
///   the ring (a reduction has two passes, reduce-scatter and gathering have one).
/// Knows where every rank is, so that only conditions have to be looked at for each iteration. Keeps copies of what it
/// is given.
class StepTimer {
  public:
    /// Throws std::invalid_argument when the plan does not fit the cluster.
    StepTimer(IterationCosts costs, const Plan& plan, const Cluster& cluster);

    /// Throws std::invalid_argument when a vector has the wrong size or a pace is not positive.
    StepTimes at(const Conditions& conditions) const;

  private:
    /// Ranks that communicate with each other.
    struct Group {
        std::vector<int> ranks;
        int nodes = 1;
        int racks = 1;
    };
    struct Links;
    struct Message;

    Group group_of(std::vector<int> ranks) const;
    Links links_of(const Group& group, const Conditions& conditions) const;
    void check(const Conditions& conditions) const;
    GpuPace pace_of(int rank, const Conditions& conditions) const;
    template <class WorkOfType>
    std::int64_t slowest(const Group& worker, double link, const Conditions& conditions, const WorkOfType& work) const;
    Message message(const Group& from, const Group& to, Duration hop_delay, const Conditions& conditions) const;
    void add_worker(int replica, int stage, const Conditions& conditions, StepTimes& times) const;
    void add_collectives(int stage, const Conditions& conditions, StepTimes& times) const;

    IterationCosts costs_;
    Layout layout_;
    std::size_t cluster_gpus_ = 0, cluster_nodes_ = 0, cluster_racks_ = 0;
    std::vector<int> gpu_of_rank_, node_of_rank_, rack_of_rank_, type_of_rank_;
    std::vector<Group> workers_;  // [workers]
    std::vector<Group> stages_;   // [pipeline] all ranks of a stage
    Group ends_;                  // first and last stage of a replica
};

/// For a single look: StepTimer(costs, plan, cluster).at(conditions).
StepTimes step_times(const IterationCosts& costs, const Plan& plan, const Cluster& cluster,
                     const Conditions& conditions = {});

}  // namespace headway::scenarios
