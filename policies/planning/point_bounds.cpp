#include "policies/planning/point_bounds.h"

#include <algorithm>
#include <cmath>

#include "policies/planning/iteration_bound.h"
#include "scenarios/costs/measured_scales.h"

namespace headway::policies {

namespace {

using scenarios::Duration;
using scenarios::WorkSeconds;

/// Seconds become whole nanoseconds piece by piece in the costs, and layers are added up in another order there.
constexpr double kRoundingAllowance = 1.0 - 1e-6;

/// A forward is at least this share of forward and backward.
constexpr double kForwardShare = 0.2;

double paced_seconds(const WorkSeconds& work, const scenarios::GpuPace& pace) {
    return work.compute / pace.compute + work.memory / pace.memory + work.fixed + work.communication / pace.fabric;
}

std::int64_t whole_ns(double seconds) {
    return static_cast<std::int64_t>(std::floor(seconds * kRoundingAllowance * 1e9));
}

/// How a worker's groups lie when full nodes are used, in order.
scenarios::GroupShape shape_in_nodes(int ranks, int stride, int used_on_node) {
    scenarios::GroupShape shape;
    shape.ranks_per_node = std::clamp(used_on_node / std::max(1, stride), 1, ranks);
    shape.nodes = (ranks + shape.ranks_per_node - 1) / shape.ranks_per_node;
    shape.groups_per_node = shape.nodes == 1 ? std::max(1, used_on_node / shape.ranks_per_node) : 1;
    return shape;
}

}  // namespace

PointBounds::PointBounds(const PlanningTask& task) : task_(task) {
    classify();
    const auto healthy = [](double factor) { return factor >= 1.0; };
    const auto none = [](Duration delay) { return delay == Duration(); };
    const scenarios::Conditions& now = task.conditions;
    uniform_ = classes_.size() == 1 && classes_.front().pace == scenarios::GpuPace() && !task_.job.measured &&
               std::all_of(now.node_network.begin(), now.node_network.end(), healthy) &&
               std::all_of(now.rack_uplink.begin(), now.rack_uplink.end(), healthy) &&
               std::all_of(now.node_delay.begin(), now.node_delay.end(), none) &&
               std::all_of(now.hop_delay.begin(), now.hop_delay.end(), none);
}

void PointBounds::classify() {
    class_of_gpu_.assign(static_cast<std::size_t>(task_.cluster.gpus()), 0);
    const std::vector<scenarios::GpuScale> scales = scenarios::measured_scales(task_.job, task_.cluster).healthy;
    for (const int gpu : usable_gpus(task_)) {
        const scenarios::Node& node = task_.cluster.node(task_.cluster.node_of(gpu));
        const auto kind = std::find_if(kinds_.begin(), kinds_.end(),
                                       [&](const scenarios::Node* known) { return known == &node || *known == node; });
        GpuClass one{static_cast<std::size_t>(kind - kinds_.begin()), {}, {}, 1};
        if (kind == kinds_.end()) kinds_.push_back(&node);
        if (!task_.conditions.gpus.empty()) one.pace = task_.conditions.gpus[static_cast<std::size_t>(gpu)];
        if (!scales.empty()) one.scale = scales[static_cast<std::size_t>(gpu)];
        // GPUs of one class mostly follow each other.
        const auto found = std::find_if(classes_.rbegin(), classes_.rend(), [&](const GpuClass& known) {
            return known.kind == one.kind && known.pace == one.pace && known.scale == one.scale;
        });
        std::size_t& number = class_of_gpu_[static_cast<std::size_t>(gpu)];
        if (found == classes_.rend()) {
            number = classes_.size();
            classes_.push_back(one);
        } else {
            number = static_cast<std::size_t>(classes_.rend() - found) - 1;
            ++found->gpus;
        }
    }
}

const PointBounds::Units& PointBounds::units(const LayoutPoint& point) {
    const scenarios::Layout& layout = point.layout;
    const Key key(layout.tensor, layout.context, layout.recompute, point.micro_batch);
    const auto found = units_.find(key);
    if (found != units_.end()) return found->second;
    const scenarios::Job job = job_of(task_, point);
    Units& all = units_[key];
    for (const scenarios::Node* node : kinds_) {
        const int used = layout.tensor <= node->gpus ? node->gpus / layout.tensor * layout.tensor : node->gpus;
        const scenarios::RankContext rank{job, layout, *node, shape_in_nodes(layout.tensor, 1, used),
                                          shape_in_nodes(layout.context, layout.tensor, used)};
        all.kinds.push_back(
            {scenarios::layer_costs(rank), scenarios::embedding_costs(rank), scenarios::head_costs(rank)});
    }
    for (const GpuClass& gpus : classes_) {
        const auto both = [&](const auto& costs) {
            return paced_seconds(costs.forward, gpus.pace) * gpus.scale.forward +
                   paced_seconds(costs.backward(), gpus.pace) * gpus.scale.backward;
        };
        const UnitCosts& kind = all.kinds[gpus.kind];
        all.classes.push_back({both(kind.layer), both(kind.embedding), both(kind.head)});
        all.speeds.emplace_back(1.0 / all.classes.back().layer / layout.ranks_per_worker(), gpus.gpus);
    }
    std::sort(all.speeds.rbegin(), all.speeds.rend());
    return all;
}

const std::vector<int>& PointBounds::layers(int virtual_stages) {
    if (!task_.strategy.layers_per_stage.empty()) return task_.strategy.layers_per_stage;
    std::vector<int>& split = layers_[virtual_stages];
    if (split.empty()) split = scenarios::even_layers(task_.job.model.layers, virtual_stages);
    return split;
}

Duration PointBounds::even_bound(const LayoutPoint& point, const UnitCosts& unit) {
    scenarios::Layout layout = point.layout;
    layout.data = 1;
    const std::vector<int>& split = layers(layout.virtual_stages());
    const bool halves = layout.schedule == scenarios::Schedule::kZeroBubble;
    const auto cells = static_cast<std::size_t>(layout.virtual_stages());
    for (auto* values : {&times_.forward, &times_.backward, &times_.backward_input, &times_.backward_weight})
        values->assign(cells, 0);
    for (std::size_t k = 0; k < cells; ++k) {
        const std::size_t stages = static_cast<std::size_t>(layout.pipeline);
        const std::size_t cell = k % stages * static_cast<std::size_t>(layout.virtual_pipeline) + k / stages;
        const double n = split[k], first = k == 0 ? 1.0 : 0.0, last = k + 1 == cells ? 1.0 : 0.0;
        times_.forward[cell] = whole_ns(n * unit.layer.forward.total() + first * unit.embedding.forward.total() +
                                        last * unit.head.forward.total());
        const double input = n * (unit.layer.recompute.total() + unit.layer.backward_input.total()) +
                             first * unit.embedding.backward_input.total() + last * unit.head.backward_input.total();
        const double weight = n * unit.layer.backward_weight.total() + first * unit.embedding.backward_weight.total() +
                              last * unit.head.backward_weight.total();
        if (halves) {
            times_.backward_input[cell] = whole_ns(input);
            times_.backward_weight[cell] = whole_ns(weight);
        } else {
            times_.backward[cell] = whole_ns(input + weight);
        }
    }
    int most = 0;
    if (task_.strategy.micro_batches_per_replica.empty()) {
        const int unit_size = layout.schedule == scenarios::Schedule::kInterleaved ? layout.pipeline : 1;
        const int units = task_.job.global_batch / point.micro_batch / unit_size;
        most = (units + point.layout.data - 1) / point.layout.data * unit_size;
    } else {
        most = *std::max_element(task_.strategy.micro_batches_per_replica.begin(),
                                 task_.strategy.micro_batches_per_replica.end());
    }
    return iteration_lower_bound(layout, false, {&most, 1}, times_);
}

Duration PointBounds::speed_bound(const LayoutPoint& point, const Units& units) const {
    const scenarios::Layout& layout = point.layout;
    double sum = 0.0, slowest = 0.0;
    int left = layout.world_size();
    for (const auto& [speed, gpus] : units.speeds) {
        if (left == 0) break;
        sum += speed * std::min(left, gpus);
        slowest = speed;
        left -= std::min(left, gpus);
    }
    const double micro_batches = task_.job.global_batch / point.micro_batch;
    // A stage waits for the first micro-batch until the stages before it are through, and ends before they are through
    // with its last one. Over the best uneven split that is at least half of the way through an even one, less where
    // the stages differ in speed (weighted by speed, the bounds of all stages add up to this), as long as every replica
    // has as many micro-batches as stages.
    const double alike = slowest / units.speeds.front().first;
    double fill = 0.0;
    if (micro_batches / layout.data * alike >= layout.pipeline) {
        fill = layout.data * 0.5 * (layout.pipeline - 1) * alike / layout.virtual_pipeline;
        if (layout.schedule == scenarios::Schedule::kZeroBubble) fill *= kForwardShare;
    }
    return Duration::nanoseconds(whole_ns((micro_batches + fill) * task_.job.model.layers / sum));
}

Duration PointBounds::operator()(const LayoutPoint& point) {
    const Units& all = units(point);
    return uniform_ ? even_bound(point, all.kinds.front()) : speed_bound(point, all);
}

}  // namespace headway::policies
