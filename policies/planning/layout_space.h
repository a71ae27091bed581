#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/language/cluster.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"
#include "scenarios/language/strategy.h"
#include "scenarios/timing/step_times.h"

/// The space that `headway plan` searches: every legal layout of a job on the GPUs that are there.
namespace headway::policies {

/// What is to be planned.
struct PlanningTask {
    scenarios::Job job;
    scenarios::Cluster cluster;
    /// Its wildcards are what the search may choose; the rest of the layout stays as it is. `placement` and `idle_gpus`
    /// only say which GPUs may be used. `layers_per_stage` and `micro_batches_per_replica`, where given, hold for every
    /// layout and leave out those with another number of virtual stages or replicas.
    scenarios::Strategy strategy;
    /// Empty: healthy. `hop_delay` counts for layouts with as many hops, and no others.
    scenarios::Conditions conditions;
    std::vector<int> unavailable_gpus;  ///< lost, ascending
    bool layers_apart = false;          ///< replicas may split the model differently
};

/// Everything open but the micro-batch, and neither layers nor shares given: what `headway plan` explores when the
/// scenario leaves nothing open itself.
scenarios::Strategy opened(scenarios::Strategy strategy);

/// One point of the space. The micro-batches of the replicas are as even as the schedule allows.
struct LayoutPoint {
    scenarios::Layout layout;
    int micro_batch = 1;
    bool operator==(const LayoutPoint&) const = default;
};

/// GPU numbers of the tensor groups that fit into nodes, group by group, in the order of nodes. Groups stay inside a
/// node; those larger than a node take whole ones. GPUs that fill no group are left out.
class GpuGroups {
  public:
    /// `usable` ascending.
    GpuGroups(const scenarios::Cluster& cluster, const std::vector<int>& usable, int tensor);
    int tensor() const { return tensor_; }
    int groups() const { return static_cast<int>(gpus_.size()) / tensor_; }
    int gpu(int group, int member) const { return gpus_[static_cast<std::size_t>(group * tensor_ + member)]; }

  private:
    int tensor_;
    std::vector<int> gpus_;
};

/// What is left of the way of a group into the network: the smallest share of its nodes' NICs and racks' uplinks, half
/// of it where messages are delayed.
double link_share(const PlanningTask& task, const GpuGroups& groups, int group);

/// Which GPUs a task may use, ascending.
std::vector<int> usable_gpus(const PlanningTask& task);

/// All legal points, in a fixed order: tensor divides heads, hidden and ffn, context the sequence, every virtual stage
/// has a layer, every replica a micro-batch (interleaved: a multiple of the stages). Of the numbers of replicas that
/// the GPUs allow, the largest counts and those below it that split the batch more evenly; where GPUs differ in speed,
/// the same for the fast ones alone. `tensor_across_nodes` gives
/// the layouts whose tensor groups are wider than a node, and no others. What could only be slower is left out: GPUs
/// are idle only where no further replica fits, a single stage has one schedule, and with fused attention nothing is
/// recomputed selectively.
std::vector<LayoutPoint> layout_points(const PlanningTask& task, bool tensor_across_nodes);

/// Why `layout_points` is empty whether or not tensor groups may be wider than a node: one line.
std::string why_no_layout(const PlanningTask& task);

/// Micro-batches of each replica, as even as the schedule allows, the first ones more. Empty where there is no way.
std::vector<int> even_shares(int micro_batches, int unit, int replicas);

/// Rank order of the GPUs that a plan uses.
enum class GpuOrder {
    kStagesTogether,    ///< stage by stage, as the strategy language places ranks
    kReplicasTogether,  ///< replica by replica: all stages of a replica are neighbours
    kEndsTogether       ///< the same, its last stage beside its first: they reduce the tied embedding
};

/// The plan of a point with equal stages and shares (or those that the task gives), on the first groups, or on those of
/// `group_order` in that order.
scenarios::Plan even_plan(const PlanningTask& task, const LayoutPoint& point, const GpuGroups& groups, GpuOrder order,
                          const std::vector<int>& group_order = {});

/// The job with the point's micro-batch.
scenarios::Job job_of(const PlanningTask& task, const LayoutPoint& point);

}  // namespace headway::policies
