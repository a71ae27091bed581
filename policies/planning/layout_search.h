#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "policies/planning/layout_space.h"
#include "scenarios/language/plan.h"
#include "scenarios/language/units.h"

/// `headway plan`: the best layouts of a job on a cluster, healthy or not.
///
/// Best first: every legal layout gets a lower bound of its iteration from the time of its layers alone; in the order
/// of that bound layouts that fit in memory get their costs and a tighter bound (iteration_bound.h); in the order of
/// that one the longest path is evaluated (scenarios/timing). When as many plans as asked for are evaluated and no
/// bound is below them, the rest cannot be better and is left alone: the result is that of evaluating everything
/// (GPUs in the order that strategies give them; in another one where that gains a per cent).
/// Where plans contend for links, the caller lends a simulator (policies/ knows none), and the best evaluated plans are
/// simulated in the same manner, since contention only makes an iteration longer. Where GPUs are not alike
/// (point_bounds.h says when) a layout stands for the best few plans of uneven_plans.h, not for all there are.
namespace headway::policies {

/// Where an iteration goes, averaged over workers; adds up to the iteration. As scenarios::HealthyShares, under the
/// task's conditions.
struct IterationShares {
    scenarios::Duration compute, bubble, tensor, pipeline, data;
};

struct PlannedLayout {
    LayoutPoint point;
    scenarios::Plan plan;
    scenarios::Duration iteration;
    IterationShares shares;          ///< of the iteration without contention
    scenarios::Duration contention;  ///< what SearchOptions::with_contention adds to that
    double tokens_per_second = 0.0;
    double mfu = 0.0;             ///< of the plan's GPUs at their nominal peak
    scenarios::Bytes memory;      ///< of the stage that leaves its GPU least room
    scenarios::Bytes gpu_memory;  ///< that this GPU has
    int fullest_stage = 0;
    std::string why;  ///< what limits it, and what sets it apart from the next
};

/// The plan that needs least more than there is, when nothing fits.
struct ClosestShortage {
    LayoutPoint point;
    int stage = 0;
    int gpu = 0;
    scenarios::Bytes needed;
    scenarios::Bytes available;
};

struct SearchResult {
    std::vector<PlannedLayout> plans;        ///< best first, one a layout; equal times in the order of the space
    std::int64_t legal = 0;                  ///< layouts in the space
    std::int64_t costed = 0;                 ///< plans whose costs were worked out
    std::int64_t evaluated = 0;              ///< plans whose longest path was
    std::int64_t contended = 0;              ///< plans that were simulated with contention
    bool tensor_across_nodes = false;        ///< no layout with tensor groups inside nodes fits
    bool interrupted = false;                ///< `go_on` said so; plans are those found by then
    std::optional<ClosestShortage> closest;  ///< set when no legal layout fits in memory
};

struct SearchOptions {
    int plans = 10;
    /// The iteration with what shared links cost; empty: nothing contends. At most `most_contended` plans are asked
    /// about; then the best of those are the result.
    std::function<scenarios::Duration(const LayoutPoint&, const scenarios::Plan&)> with_contention;
    int most_contended = 400;
    /// Asked now and then with what is known so far, its plans left out; returns false to end the search.
    std::function<bool(const SearchResult& so_far)> go_on;
};

/// Deterministic. Throws std::invalid_argument for a task that no layout can serve at all, whatever the memory: the
/// message names what stands against it.
SearchResult search_layouts(const PlanningTask& task, const SearchOptions& options = {});

/// The task's strategy with a plan's values in place of its wildcards: scenarios::initial_plan gives the plan again.
/// Throws std::invalid_argument for a plan whose replicas split the model differently, which no strategy can say.
scenarios::Strategy resolved_strategy(const PlanningTask& task, const scenarios::Plan& plan);

/// Evaluates one plan as the search does (the scenario's own, say) with `options.with_contention`. Throws
/// std::invalid_argument for a plan that does not fit job, cluster or schedule; memory is not looked at.
PlannedLayout evaluate_layout(const PlanningTask& task, const LayoutPoint& point, const scenarios::Plan& plan,
                              const SearchOptions& options = {});

}  // namespace headway::policies
