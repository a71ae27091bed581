#include "policies/planning/relayout.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policies/planning/plan_memory.h"
#include "policies/planning/point_bounds.h"
#include "policies/planning/uneven_plans.h"

namespace headway::policies {

using scenarios::Duration;
using scenarios::Plan;
using Kind = Candidate::Kind;

namespace {

constexpr double kFasterLayout = 0.01;   ///< than everything offered before: a new layout moves nearly all state
constexpr double kFasterWithout = 0.02;  ///< what is left out is not measured, and missing when it is well again
constexpr double kFasterHealthy = 0.03;  ///< where nothing is slow: what will be may suit another layout less
constexpr std::size_t kLayoutsTried = 3;
constexpr std::size_t kLayoutsLookedAt = 16;  ///< many do not fit in memory
constexpr int kManyGpus = 4096;               ///< from here on only the most promising layout

const Duration kNever = Duration::nanoseconds(std::numeric_limits<std::int64_t>::max());

Kind kind_of_change(const Plan& from, const Plan& to) {
    if (to.layout.world_size() < from.layout.world_size()) return Kind::kDropGpus;
    if (to.layout.world_size() > from.layout.world_size()) return Kind::kBringBack;
    return to.layout == from.layout ? Kind::kPlaceRanks : Kind::kChangeDegrees;
}

/// How much longer a pipeline takes for filling and draining (Narayanan et al. 2021, section 2.2).
double with_bubble(const scenarios::Job& job, const scenarios::Layout& layout) {
    const double micro_batches = static_cast<double>(job.global_batch) / job.micro_batch / layout.data;
    return 1.0 + (layout.pipeline - 1) / micro_batches / layout.virtual_pipeline;
}

std::string why_other_layout(const Plan& from, const Plan& to) {
    if (from.layout == to.layout) return "all GPUs in an order that puts equal ones together";
    return "t" + std::to_string(to.layout.tensor) + " p" + std::to_string(to.layout.pipeline) + " d" +
           std::to_string(to.layout.data) + " on " + std::to_string(to.layout.world_size()) +
           " GPUs suits their speeds better";
}

}  // namespace

std::vector<Plan> LayoutOffers::promising(Proposal& proposal, Duration limit, std::size_t wanted) {
    const ClusterFacts& facts = proposal.facts();
    const Plan plan = proposal.plan();
    PlanningTask task{facts.job, facts.cluster, {}, proposal.conditions(), proposal.unavailable(), false};
    task.layers_apart = facts.adapt.layers && facts.adapt.layers_apart;
    task.strategy.layout = plan.layout;
    task.strategy.wildcards.data = true;
    if (facts.adapt.degrees) {
        task.strategy.wildcards.tensor = task.strategy.wildcards.pipeline = true;
        task.strategy.wildcards.context = plan.layout.context > 1;
        task.strategy.wildcards.virtual_pipeline = plan.layout.virtual_pipeline > 1;
    }
    if (!facts.adapt.drop) {  // the same GPUs
        task.strategy.placement = plan.gpu_of_rank;
    }

    PointBounds bounds(task);
    std::vector<std::pair<Duration, LayoutPoint>> points;
    for (const LayoutPoint& point : layout_points(task, false)) {
        if (bounds.uniform() && point.layout == plan.layout) continue;
        if (!facts.adapt.drop && point.layout.world_size() != plan.layout.world_size()) continue;
        const Duration bound = bounds(point);
        if (bound < limit) points.emplace_back(bound.scaled(with_bubble(facts.job, point.layout)), point);
    }
    std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Plan> found;
    std::size_t looked_at = 0;
    const std::vector<int> usable = usable_gpus(task);
    const std::vector<scenarios::Bytes> memory_of_gpu = scenarios::memory_of_gpus(facts.cluster);
    UnevenPlans uneven(task, bounds);
    for (const auto& [promise, point] : points) {
        if (found.size() == wanted || ++looked_at > kLayoutsLookedAt) break;
        const GpuGroups groups(facts.cluster, usable, point.layout.tensor);
        if (!may_be_faster(proposal, task, point, groups, limit)) continue;
        PlanMemory memory(facts.job, point.layout, memory_of_gpu);
        for (Plan& other : uneven.of(point, groups, memory, 1))
            if (proposal.legal(other)) found.push_back(std::move(other));
    }
    return found;
}

bool LayoutOffers::may_be_faster(Proposal& proposal, const PlanningTask& task, const LayoutPoint& point,
                                 const GpuGroups& groups, Duration limit) {
    if (mixed_) return true;
    const auto known =
        std::find_if(healthy_.begin(), healthy_.end(), [&](const auto& entry) { return entry.first == point.layout; });
    if (known != healthy_.end()) return known->second < limit;
    const Plan even = even_plan(task, point, groups, GpuOrder::kStagesTogether);
    const bool fits = !even.micro_batches_of_replica.empty() && proposal.predictor().fits(even);
    healthy_.emplace_back(point.layout, fits ? proposal.predictor().iteration(even) : kNever);
    return healthy_.back().second < limit;
}

double LayoutOffers::least_gain(const Proposal& proposal) {
    return proposal.conditions() == scenarios::Conditions() ? kFasterHealthy : kFasterLayout;
}

std::vector<Plan> LayoutOffers::offer(Proposal& proposal) {
    const ClusterFacts& facts = proposal.facts();
    if (!facts.adapt.placement && !facts.adapt.degrees) return {};
    const Duration limit = proposal.fastest().scaled((1.0 - least_gain(proposal)) / proposal.corrections().common());
    const std::size_t wanted = facts.cluster.gpus() >= kManyGpus ? 1 : kLayoutsTried;
    std::vector<Plan> found = promising(proposal, limit, wanted);
    offer_again(proposal, found);
    return found;
}

void LayoutOffers::offer_again(Proposal& proposal, const std::vector<Plan>& plans) {
    const Plan plan = proposal.plan();
    const double least = least_gain(proposal);
    for (const Plan& other : plans) {
        const Kind kind = kind_of_change(plan, other);
        proposal.offer(kind, other, why_other_layout(plan, other),
                       proposal.gain_over_fastest(kind == Kind::kDropGpus ? std::max(least, kFasterWithout) : least));
    }
}

void LayoutOffers::offer_after_loss(Proposal& proposal) {
    const ClusterFacts& facts = proposal.facts();
    if (!facts.adapt.degrees || !facts.adapt.drop) return;
    const std::optional<Duration> fastest = proposal.fastest_restart();
    const Duration limit = fastest ? fastest->scaled((1.0 - kFasterLayout) / proposal.corrections().common()) : kNever;
    const std::size_t wanted = facts.cluster.gpus() >= kManyGpus ? 1 : kLayoutsTried;
    for (const Plan& other : promising(proposal, limit, wanted)) {
        const std::string on = std::to_string(other.layout.world_size()) + " GPUs that are left: t" +
                               std::to_string(other.layout.tensor) + " p" + std::to_string(other.layout.pipeline) +
                               " d" + std::to_string(other.layout.data);
        if (proposal.fastest_restart() &&
            proposal.iteration(other) > proposal.fastest_restart()->scaled(1.0 - kFasterLayout))
            continue;
        proposal.offer_restart(other, "restart at once on the " + on);
    }
}

}  // namespace headway::policies
