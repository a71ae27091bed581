#pragma once

#include <vector>

#include "scenarios/language/cluster.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"

/// Plans as the GPUs of their workers, which is how parts of a job are moved, left out and put together.
namespace headway::policies {

/// [workers] GPUs of each worker, member by member, replica by replica.
std::vector<std::vector<int>> workers_of(const scenarios::Plan& plan);

/// Layers of each virtual stage of a replica.
std::vector<int> layers_of_replica(const scenarios::Plan& plan, int replica);

/// A plan of `layout` with as many replicas as `workers` make, each with its own layers [replicas * virtual_stages] and
/// even shares (empty where the schedule allows none).
scenarios::Plan put_together(const scenarios::Job& job, scenarios::Layout layout,
                             const std::vector<std::vector<int>>& workers, const std::vector<int>& layers_of_cell);

/// The plan without these replicas (ascending, not all of them), their micro-batches shared evenly.
scenarios::Plan without_replicas(const scenarios::Job& job, const scenarios::Plan& plan,
                                 const std::vector<int>& replicas);

/// GPUs that the plan leaves idle and that are not among `gone` (ascending), in groups as large as a worker, each
/// within a node (within whole nodes where a worker is larger), in the order of nodes.
std::vector<std::vector<int>> idle_groups(const scenarios::Cluster& cluster, const scenarios::Plan& plan,
                                          const std::vector<int>& gone);

/// As even as the schedule allows: multiples of the stages where it is interleaved. Empty where there are none.
std::vector<int> even_shares(const scenarios::Job& job, const scenarios::Layout& layout);

}  // namespace headway::policies
