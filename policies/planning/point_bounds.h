#pragma once

#include <cstddef>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "policies/planning/layout_space.h"
#include "scenarios/costs/iteration_costs.h"
#include "scenarios/costs/layer.h"

namespace headway::policies {

/// Lower bounds of the iteration under any plan of a layout, in a microsecond or so: from the GPU time of layers,
/// embedding and logits alone, without placing a rank. Where all usable GPUs are alike and healthy, stages and shares
/// are known to be even and the bound is that of iteration_bound.h; elsewhere, work over the speed of the fastest GPUs.
class PointBounds {
  public:
    /// `task` must outlive this.
    explicit PointBounds(const PlanningTask& task);

    scenarios::Duration operator()(const LayoutPoint& point);
    /// Forward and backward of one micro-batch on a usable GPU at its pace, as a member of a worker of this layout.
    struct GpuSeconds {
        double layer = 0.0, embedding = 0.0, head = 0.0;
    };
    /// By classes of GPUs that are alike; holds as long as this.
    const std::vector<GpuSeconds>& seconds_of_classes(const LayoutPoint& point) { return units(point).classes; }
    std::size_t class_of_gpu(int gpu) const { return class_of_gpu_[static_cast<std::size_t>(gpu)]; }
    /// Whether all usable GPUs are alike and no condition slows any of them.
    bool uniform() const { return uniform_; }

  private:
    struct GpuClass {
        std::size_t kind = 0;  ///< of node
        scenarios::GpuPace pace;
        scenarios::GpuScale scale;  ///< of measured jobs
        int gpus = 0;
    };
    struct UnitCosts {
        scenarios::LayerCosts layer;
        scenarios::EdgeCosts embedding, head;
    };
    struct Units {
        std::vector<UnitCosts> kinds;
        std::vector<GpuSeconds> classes;
        std::vector<std::pair<double, int>> speeds;  ///< layers a second of a worker's member, GPUs; fastest first
    };
    using Key = std::tuple<int, int, scenarios::Recompute, int>;  // tensor, context, recompute, micro-batch

    void classify();
    const Units& units(const LayoutPoint& point);
    scenarios::Duration even_bound(const LayoutPoint& point, const UnitCosts& unit);
    scenarios::Duration speed_bound(const LayoutPoint& point, const Units& units) const;
    const std::vector<int>& layers(int virtual_stages);

    const PlanningTask& task_;
    std::vector<const scenarios::Node*> kinds_;
    std::vector<GpuClass> classes_;
    std::vector<std::size_t> class_of_gpu_;  ///< [GPUs of the cluster]
    bool uniform_ = true;
    std::map<Key, Units> units_;
    std::map<int, std::vector<int>> layers_;
    scenarios::StepTimes times_;  ///< scratch
};

}  // namespace headway::policies
