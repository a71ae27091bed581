#include "policies/planning/layout_search.h"

#include <algorithm>
#include <list>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "policies/planning/iteration_bound.h"
#include "policies/planning/plan_explanation.h"
#include "policies/planning/plan_memory.h"
#include "policies/planning/point_bounds.h"
#include "policies/planning/uneven_plans.h"
#include "scenarios/costs/iteration_costs.h"
#include "scenarios/costs/memory.h"
#include "scenarios/timing/evaluator.h"
#include "scenarios/timing/healthy_shares.h"
#include "scenarios/timing/step_times.h"

namespace headway::policies {

namespace {

using scenarios::Duration;
using scenarios::Evaluator;
using scenarios::Layout;
using scenarios::Plan;
using scenarios::StepTimes;

constexpr std::size_t kRememberedEvaluators = 48;
constexpr double kWorthAnOrder = 0.99;  ///< of the iteration in the order that strategies have by themselves
constexpr std::size_t kPlansOfUnevenLayout = 6;
constexpr std::int64_t kExpansionsBetweenQuestions = 64;

/// Conditions as a layout sees them: delays of hops belong to one number of stages.
scenarios::Conditions conditions_for(const PlanningTask& task, const Layout& layout) {
    scenarios::Conditions conditions = task.conditions;
    if (conditions.hop_delay.size() != static_cast<std::size_t>(layout.pipeline - 1)) conditions.hop_delay.clear();
    return conditions;
}

StepTimes times_of(const PlanningTask& task, const scenarios::IterationCosts& costs, const Plan& plan) {
    return scenarios::step_times(costs, plan, task.cluster, conditions_for(task, plan.layout));
}

/// Evaluators by what they depend on: the schedule, not the width of a worker or what it recomputes.
class EvaluatorShelf {
  public:
    Evaluator& of(const Plan& plan, bool tied_embedding) {
        Plan key;
        key.layout = plan.layout;
        key.layout.tensor = 1;
        key.layout.context = std::min(plan.layout.context, 2);  // whether gradients are reduced over context ranks
        key.layout.recompute = scenarios::Recompute::kNone;
        key.micro_batches_of_replica = plan.micro_batches_of_replica;
        const auto found =
            std::find_if(shelf_.begin(), shelf_.end(), [&](const auto& entry) { return entry.first == key; });
        if (found != shelf_.end()) {
            shelf_.splice(shelf_.begin(), shelf_, found);
            return shelf_.front().second;
        }
        shelf_.emplace_front(std::move(key), Evaluator(plan, tied_embedding));
        if (shelf_.size() > kRememberedEvaluators) shelf_.pop_back();
        return shelf_.front().second;
    }

  private:
    std::list<std::pair<Plan, Evaluator>> shelf_;  // the last used first
};

IterationShares shares_of(const PlanningTask& task, const scenarios::IterationCosts& costs, const Plan& plan,
                          Evaluator& evaluator) {
    scenarios::IterationCosts silent = costs;
    for (auto& type : silent.virtual_stages)
        for (scenarios::VirtualStageCosts& stage : type)
            for (scenarios::Work* work :
                 {&stage.forward, &stage.backward, &stage.backward_input, &stage.backward_weight})
                work->communication = Duration();
    const StepTimes times = times_of(task, costs, plan);
    const scenarios::Evaluation with = evaluator.evaluate(times);
    const scenarios::Evaluation without = evaluator.evaluate(times_of(task, silent, plan));
    std::vector<std::int64_t> tensor;
    for (std::size_t w = 0; w < with.workers.size(); ++w)
        tensor.push_back((with.workers[w].compute - without.workers[w].compute).ns());
    const scenarios::HealthyShares shares = scenarios::healthy_shares(evaluator, times, tensor);
    return {Duration::nanoseconds(shares.compute_ns), Duration::nanoseconds(shares.bubble_ns),
            Duration::nanoseconds(shares.tensor_ns), Duration::nanoseconds(shares.pipeline_ns),
            Duration::nanoseconds(shares.data_ns)};
}

PlannedLayout planned(const PlanningTask& task, const LayoutPoint& point, const Plan& plan, EvaluatorShelf& shelf) {
    const scenarios::Job job = job_of(task, point);
    const scenarios::IterationCosts costs = scenarios::iteration_costs(job, task.cluster, plan);
    Evaluator& evaluator = shelf.of(plan, job.model.tied_embedding);
    PlannedLayout layout;
    layout.point = point;
    layout.plan = plan;
    layout.iteration = evaluator.iteration_time(times_of(task, costs, plan));
    layout.shares = shares_of(task, costs, plan, evaluator);
    layout.tokens_per_second = static_cast<double>(job.tokens_per_iteration()) / layout.iteration.s();
    layout.mfu = costs.model_flops.value / (layout.iteration.s() * costs.peak.value);
    const std::vector<scenarios::Bytes> memory = scenarios::memory_of_gpus(task.cluster);
    const PlanMemory::Fullest fullest = PlanMemory(job, plan.layout, memory).fullest(plan);
    layout.memory = fullest.needed;
    layout.gpu_memory = fullest.available;
    layout.fullest_stage = fullest.stage;
    return layout;
}

void add_contention(const PlanningTask& task, Duration iteration, PlannedLayout& layout) {
    const double ratio = layout.iteration / iteration;
    layout.contention = iteration - layout.iteration;
    layout.iteration = iteration;
    layout.tokens_per_second = static_cast<double>(task.job.tokens_per_iteration()) / iteration.s();
    layout.mfu *= ratio;
}

class BestFirst {
  public:
    BestFirst(const PlanningTask& task, const SearchOptions& options, bool across)
        : task_(task), options_(options), points_(layout_points(task, across)), bounds_(task) {
        result_.legal = static_cast<std::int64_t>(points_.size());
        result_.tensor_across_nodes = across;
    }

    SearchResult run() {
        for (std::size_t i = 0; i < points_.size(); ++i)
            queue_.push({bounds_(points_[i]), Stage::kPoint, static_cast<std::int64_t>(i), i, {}});
        const auto wanted = static_cast<std::size_t>(std::max(0, options_.plans)) + 1;  // the last is compared with one
        std::vector<Entry> best;
        while (!queue_.empty() && best.size() < wanted) {
            if (steps_++ % kExpansionsBetweenQuestions == 0 && !go_on()) break;
            const Entry entry = queue_.top();
            queue_.pop();
            if (listed_.count(entry.point) > 0) continue;  // a better plan of this layout is
            if (result_.contended >= options_.most_contended && entry.stage != Stage::kContended) continue;
            switch (entry.stage) {
                case Stage::kPoint:
                    expand(entry);
                    break;
                case Stage::kPlan:
                    evaluate(entry);
                    break;
                case Stage::kEvaluated:
                    if (options_.with_contention) {
                        contend(entry);
                        break;
                    }
                    [[fallthrough]];
                case Stage::kContended:
                    best.push_back(entry);
                    listed_.insert(entry.point);
                    break;
            }
        }
        for (const Entry& entry : best) {
            result_.plans.push_back(planned(task_, points_[entry.point], entry.plan, shelf_));
            add_contention(task_, entry.bound, result_.plans.back());
        }
        for (std::size_t i = 0; i < result_.plans.size(); ++i)
            result_.plans[i].why =
                explain(result_.plans[i], i + 1 < result_.plans.size() ? &result_.plans[i + 1] : nullptr);
        if (result_.plans.size() == wanted) result_.plans.pop_back();
        return std::move(result_);
    }

    /// After `run` found nothing: every legal layout was too large.
    std::optional<ClosestShortage> closest() const { return closest_; }

  private:
    enum class Stage { kPoint, kPlan, kEvaluated, kContended };
    struct Entry {
        Duration bound;
        Stage stage;
        std::int64_t order;  // of equal entries
        std::size_t point;
        Plan plan;
        bool operator<(const Entry& other) const {  // std::priority_queue gives the largest
            return std::tie(other.bound, other.stage, other.order) < std::tie(bound, stage, order);
        }
    };

    bool go_on() {
        if (options_.go_on) result_.interrupted = !options_.go_on(result_);
        return !result_.interrupted;
    }

    const GpuGroups& groups(int tensor) {
        const auto found = groups_.find(tensor);
        if (found != groups_.end()) return found->second;
        return groups_.emplace(tensor, GpuGroups(task_.cluster, usable_gpus(task_), tensor)).first->second;
    }

    void expand(const Entry& entry) {
        const LayoutPoint& point = points_[entry.point];
        const scenarios::Job job = job_of(task_, point);
        const GpuGroups& where = groups(point.layout.tensor);
        PlanMemory memory(job, point.layout, memory_of_gpu_);
        std::vector<Plan> plans;
        if (!bounds_.uniform()) {
            plans = uneven_.of(point, where, memory, kPlansOfUnevenLayout);
        } else {
            plans.push_back(even_plan(task_, point, where, GpuOrder::kStagesTogether));
            if (point.layout.pipeline > 1)
                for (const GpuOrder order : {GpuOrder::kReplicasTogether, GpuOrder::kEndsTogether})
                    plans.push_back(even_plan(task_, point, where, order));
        }
        Duration in_order;
        for (std::size_t i = 0; i < plans.size(); ++i) {
            Plan& plan = plans[i];
            if (i == 0 || !bounds_.uniform()) {
                const PlanMemory::Fullest fullest = memory.fullest(plan);
                if (fullest.share > 1.0) {
                    remember_shortage(point, fullest);
                    if (bounds_.uniform()) return;  // equal GPUs: another order needs the same
                    continue;
                }
            }
            ++result_.costed;
            const StepTimes times = times_of(task_, scenarios::iteration_costs(job, task_.cluster, plan), plan);
            const Duration bound =
                iteration_lower_bound(plan.layout, job.model.tied_embedding, plan.micro_batches_of_replica, times);
            if (i == 0) in_order = bound;
            if (bounds_.uniform() && i > 0 && bound.s() > kWorthAnOrder * in_order.s()) continue;
            queue_.push({bound, Stage::kPlan, entry.order, entry.point, std::move(plan)});
        }
    }

    void evaluate(const Entry& entry) {
        ++result_.evaluated;
        const scenarios::Job job = job_of(task_, points_[entry.point]);
        const StepTimes times = times_of(task_, scenarios::iteration_costs(job, task_.cluster, entry.plan), entry.plan);
        const Duration time = shelf_.of(entry.plan, job.model.tied_embedding).iteration_time(times);
        queue_.push({time, Stage::kEvaluated, entry.order, entry.point, entry.plan});
    }

    void contend(const Entry& entry) {
        ++result_.contended;
        const Duration time = options_.with_contention(points_[entry.point], entry.plan);
        queue_.push({std::max(time, entry.bound), Stage::kContended, entry.order, entry.point, entry.plan});
    }

    void remember_shortage(const LayoutPoint& point, const PlanMemory::Fullest& fullest) {
        if (closest_ && fullest.needed - fullest.available >= closest_->needed - closest_->available) return;
        closest_ = {point, fullest.stage, fullest.gpu, fullest.needed, fullest.available};
    }

    const PlanningTask& task_;
    const SearchOptions& options_;
    const std::vector<LayoutPoint> points_;
    const std::vector<scenarios::Bytes> memory_of_gpu_ = scenarios::memory_of_gpus(task_.cluster);
    PointBounds bounds_;
    UnevenPlans uneven_{task_, bounds_};
    EvaluatorShelf shelf_;
    std::map<int, GpuGroups> groups_;
    std::priority_queue<Entry> queue_;
    std::set<std::size_t> listed_;  // points
    std::int64_t steps_ = 0;
    SearchResult result_;
    std::optional<ClosestShortage> closest_;
};

}  // namespace

SearchResult search_layouts(const PlanningTask& task, const SearchOptions& options) {
    std::optional<ClosestShortage> closest;
    std::int64_t legal = 0;
    for (const bool across : {false, true}) {
        BestFirst search(task, options, across);
        SearchResult result = search.run();
        legal += result.legal;
        if (!result.plans.empty() || result.interrupted) return result;
        const auto found = search.closest();
        if (found && (!closest || found->needed - found->available < closest->needed - closest->available))
            closest = found;
    }
    if (legal == 0) throw std::invalid_argument(why_no_layout(task));
    SearchResult nothing;
    nothing.legal = legal;
    nothing.closest = closest;
    return nothing;
}

scenarios::Strategy resolved_strategy(const PlanningTask& task, const Plan& plan) {
    if (!plan.same_layers_everywhere())
        throw std::invalid_argument("a strategy splits the model alike in all replicas");
    scenarios::Strategy strategy = task.strategy;
    const Layout& layout = plan.layout;
    strategy.wildcards = {};
    strategy.layout = layout;
    strategy.layers_per_stage.assign(plan.layers_of_cell.begin(),
                                     plan.layers_of_cell.begin() + layout.virtual_stages());
    if (strategy.layers_per_stage == scenarios::even_layers(task.job.model.layers, layout.virtual_stages()))
        strategy.layers_per_stage.clear();
    const std::vector<int>& shares = plan.micro_batches_of_replica;
    strategy.micro_batches_per_replica = shares;
    if (std::all_of(shares.begin(), shares.end(), [&](int share) { return share == shares.front(); }))
        strategy.micro_batches_per_replica.clear();
    strategy.placement = plan.gpu_of_rank;
    strategy.idle_gpus = 0;
    std::vector<int> in_order(plan.gpu_of_rank.size());
    std::iota(in_order.begin(), in_order.end(), 0);
    if (plan.gpu_of_rank == in_order) {
        strategy.placement.clear();
        strategy.idle_gpus = task.cluster.gpus() - layout.world_size();
    }
    return strategy;
}

PlannedLayout evaluate_layout(const PlanningTask& task, const LayoutPoint& point, const Plan& plan,
                              const SearchOptions& options) {
    EvaluatorShelf shelf;
    PlannedLayout layout = planned(task, point, plan, shelf);
    if (options.with_contention)
        add_contention(task, std::max(layout.iteration, options.with_contention(point, plan)), layout);
    layout.why = explain(layout, nullptr);
    return layout;
}

}  // namespace headway::policies
