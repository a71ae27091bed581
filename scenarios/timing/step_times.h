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

/// What conditions come to for one layout on given GPUs, whatever the split of the model: made by StepTimer::paces.
struct PlacedPaces {
    /// A rank that may be the slowest of its worker.
    struct Member {
        int type = 0;                          ///< of its GPU
        GpuPace pace;                          ///< `fabric` is that of the worker's slowest link
        GpuPace stretched;                     ///< 1 / pace
        double forward = 1.0, backward = 1.0;  ///< its GpuScale
    };
    /// From a worker to a neighbour: of the ranks' messages inside nodes and of those between nodes the slowest link,
    /// 0 where there is none.
    struct Way {
        double inside = 0.0, across = 0.0;
        double scale = 1.0;  ///< GpuScale of the sender, the largest of its ranks
        Duration delay;
    };
    /// State of the links of a group.
    struct Links {
        double slowest = 1.0;  ///< bandwidth over nominal
        int nodes = 1;
        Duration delay;  ///< longest that is added to a message of one of the nodes
    };
    std::vector<std::size_t> first_member;  ///< [workers + 1] into `members`
    std::vector<Member> members;
    std::vector<Way> to_next, to_previous;  ///< [workers]; empty with a single virtual stage
    std::vector<Links> stages;              ///< [pipeline]
    Links ends;                             ///< first and last stage of the replicas
    bool delays = false;                    ///< whether the conditions name any
    std::vector<double> micro_batch_factor;
};

/// Puts costs and conditions together, without contention:
/// - a worker runs at the pace of its slowest member, since its tensor and context ranks work in lock step; where it
/// spans
///   nodes, its own communication also waits for the slowest NIC;
/// - a message between two workers takes as long as the slowest of its ranks' parts: inside a node over the fabric,
/// elsewhere
///   over the NICs, between racks over the uplinks too; the host's overhead does not stretch with a slow link;
/// - where the costs carry scales of GPUs (measured jobs), compute and messages take that much longer, whatever the
///   conditions;
/// - a collective runs at the pace of its slowest link; a delay of a node's messages counts once for every node and
/// pass of
///   the ring (a reduction has two passes, reduce-scatter and gathering have one).
///
/// Knows where every rank is, so that only conditions have to be looked at for each iteration; and conditions only once
/// for all splits of the model over the same layout and GPUs:
///
///     PlacedPaces paces = timer.paces(conditions);           // O(ranks)
///     for (each split) timer.times(costs_of_split, paces, times);  // O(cells)
class StepTimer {
  public:
    /// O(ranks). Throws std::invalid_argument when the plan does not fit the cluster. Keeps copies of what it is given.
    StepTimer(IterationCosts costs, const Plan& plan, const Cluster& cluster);

    /// Throws std::invalid_argument when a vector has the wrong size or a pace is not positive.
    StepTimes at(const Conditions& conditions) const;

    /// What conditions come to on the plan's GPUs, with the gpu_scales of the timer's own costs. Throws like `at`.
    PlacedPaces paces(const Conditions& conditions) const;
    /// `at` for other costs than the timer's own: those of any plan with the same layout on the same GPUs (for instance
    /// from LayoutCosts). `times` is written over; its memory is used again. Of micro_batch_factor it copies what the
    /// conditions said, which goes with the shares of the replicas.
    void times(const IterationCosts& costs, const PlacedPaces& paces, StepTimes& times) const;

  private:
    void check(const Conditions& conditions) const;
    PlacedPaces::Links links_of(std::size_t first_rank, std::size_t ranks, int nodes, int racks,
                                const Conditions& conditions) const;
    void add_members(std::size_t worker, const Conditions& conditions, PlacedPaces& out) const;
    PlacedPaces::Way way(std::size_t from, std::size_t to, Duration hop_delay, double GpuScale::*scale,
                         const Conditions& conditions) const;
    std::size_t first_rank(int replica, int stage) const {
        return static_cast<std::size_t>((stage * layout_.data + replica) * layout_.ranks_per_worker());
    }

    IterationCosts costs_;
    Layout layout_;
    std::size_t cluster_gpus_ = 0, cluster_nodes_ = 0, cluster_racks_ = 0;
    std::vector<int> gpu_of_rank_, node_of_rank_, rack_of_rank_, type_of_rank_;
    std::vector<int> worker_nodes_, worker_racks_;  // [workers] how many a worker spans
    std::vector<int> stage_nodes_, stage_racks_;    // [pipeline]
    int ends_nodes_ = 1, ends_racks_ = 1;           // first and last stage of a replica: most of any replica
};

/// For a single look: StepTimer(costs, plan, cluster).at(conditions).
StepTimes step_times(const IterationCosts& costs, const Plan& plan, const Cluster& cluster,
                     const Conditions& conditions = {});

}  // namespace headway::scenarios
