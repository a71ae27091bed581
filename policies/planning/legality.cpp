#include "policies/planning/legality.h"

#include <algorithm>

#include "scenarios/language/strategy.h"

namespace headway::policies {

using scenarios::Layout;
using scenarios::Plan;

namespace {

/// The same layout but for the number of replicas.
bool only_replicas_differ(Layout a, const Layout& b) {
    a.data = b.data;
    return a == b;
}

bool evenly_split(const Plan& plan) {
    if (!plan.same_layers_everywhere()) return false;
    const auto [least, most] = std::minmax_element(plan.layers_of_cell.begin(), plan.layers_of_cell.end());
    return *most - *least <= 1;
}

bool evenly_shared(const Plan& plan) {
    const int unit = plan.layout.schedule == scenarios::Schedule::kInterleaved ? plan.layout.pipeline : 1;
    const auto [least, most] =
        std::minmax_element(plan.micro_batches_of_replica.begin(), plan.micro_batches_of_replica.end());
    return *most - *least <= unit;
}

/// One replica's layers after the other's, as far as both have them.
bool split_as_before(const Plan& from, const Plan& to) {
    const std::size_t shorter = std::min(from.layers_of_cell.size(), to.layers_of_cell.size());
    return from.same_layers_everywhere() && to.same_layers_everywhere() &&
           std::equal(from.layers_of_cell.begin(), from.layers_of_cell.begin() + static_cast<std::ptrdiff_t>(shorter),
                      to.layers_of_cell.begin());
}

}  // namespace

bool may_change(const scenarios::Adapt& adapt, const Plan& from, const Plan& to) {
    if (!to.same_layers_everywhere() && from.same_layers_everywhere() && !(adapt.layers && adapt.layers_apart))
        return false;
    if (from.layout == to.layout) {
        if (from.gpu_of_rank != to.gpu_of_rank && !adapt.placement) {
            // Left-out GPUs come back and others go: that is a drop, not a change of places.
            std::vector<int> a = from.gpu_of_rank, b = to.gpu_of_rank;
            std::sort(a.begin(), a.end());
            std::sort(b.begin(), b.end());
            if (a == b || !adapt.drop) return false;
        }
        return (from.layers_of_cell == to.layers_of_cell || adapt.layers) &&
               (from.micro_batches_of_replica == to.micro_batches_of_replica || adapt.micro_batches);
    }
    if (!only_replicas_differ(from.layout, to.layout) && !adapt.degrees) return false;
    if (from.layout.world_size() != to.layout.world_size() && !adapt.drop) return false;
    const bool same_stages = only_replicas_differ(from.layout, to.layout);
    return (adapt.layers || (same_stages ? split_as_before(from, to) : evenly_split(to))) &&
           (adapt.micro_batches || evenly_shared(to));
}

bool uses_none(const Plan& plan, const std::vector<int>& gpus) {
    return gpus.empty() || std::none_of(plan.gpu_of_rank.begin(), plan.gpu_of_rank.end(),
                                        [&](int gpu) { return std::binary_search(gpus.begin(), gpus.end(), gpu); });
}

}  // namespace headway::policies
