#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "scenarios/costs/iteration_costs.h"
#include "scenarios/costs/placement.h"

namespace headway::scenarios {

/// Costs of all plans of one job that have the same layout on the same GPUs: whatever their split of the model and
/// their shares of micro-batches. Kernels and collectives are worked out once for each count of layers and remembered;
/// after that the costs of another split take O(cells). Not thread-safe.
class LayoutCosts {
  public:
    /// `job` and `cluster` outlive it. O(ranks). Throws std::invalid_argument for a layout that does not fit the GPUs.
    LayoutCosts(const Job& job, const Cluster& cluster, const Layout& layout, std::vector<int> gpu_of_rank);
    ~LayoutCosts();
    LayoutCosts(LayoutCosts&&) noexcept;
    LayoutCosts& operator=(LayoutCosts&&) noexcept;

    /// Puts the ranks on other GPUs. Keeps what it remembers of kernels where tensor and context groups span as many
    /// nodes as before. O(ranks).
    void place(std::vector<int> gpu_of_rank);

    const Layout& layout() const;
    const std::vector<int>& gpu_of_rank() const;
    const Placement& placement() const;

    /// What `layers` layers (0 or more) of a virtual stage cost on a GPU type (index as in gpu_types_of) that the ranks
    /// use: what a partitioner weighs. The reference holds until place(), for layers up to the model's.
    const VirtualStageCosts& cell(int type, int virtual_stage, int layers);

    /// What iteration_costs says of a plan. It has this layout and these GPUs (throws std::invalid_argument otherwise)
    /// and fits the job (not checked here: plan_check.h).
    IterationCosts costs(const Plan& plan);
    /// The same into `out`, whose memory is used again.
    void costs(const Plan& plan, IterationCosts& out);

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace headway::scenarios
