#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <vector>

#include "policies/observation.h"
#include "policies/planning/gpu_paces.h"
#include "policies/planning/iteration_trend.h"
#include "policies/planning/link_states.h"
#include "scenarios/costs/iteration_costs.h"
#include "scenarios/language/cluster.h"
#include "scenarios/timing/step_times.h"

namespace headway::policies {

/// What an observation says about the state of GPUs and links, as the evaluator of iterations takes it. Rests on
/// compute times, clocks and bus bandwidths alone, and on what was seen earlier in the episode.
class ConditionsEstimator {
  public:
    /// `cluster` outlives it.
    explicit ConditionsEstimator(const scenarios::Cluster& cluster);

    /// `model_error`: time of the healthy job over what costs say of it.
    void start_episode(double model_error = 1.0);
    /// Predicted iteration of the observation's plan.
    using Predict = std::function<scenarios::Duration(const scenarios::Conditions&)>;
    /// Takes in one observation; `costs` are those of its plan. Where measurements of links can be read in two ways,
    /// the one counts under which `predict` comes closer to the measured iteration.
    void update(const Observation& observation, const scenarios::IterationCosts& costs, const Predict& predict);

    /// Every vector is empty where all it tells of is healthy.
    const scenarios::Conditions& conditions() const { return conditions_; }
    /// Of the job's present plan at the end of the last interval in which one completed, where its mean would tell of
    /// half a change (iteration_trend.h).
    Duration iteration() const { return history_.empty() ? Duration() : history_.front().now; }
    /// The conditions tell of the state that iteration() was measured in: nothing came late, or nothing changed
    /// meanwhile.
    bool current() const { return current_; }
    /// Grows when conditions() changes, which noise alone does not do.
    int version() const { return version_; }
    /// Deviation of one interval's measurement of a rank, relative.
    double noise() const { return paces_.noise(); }

  private:
    scenarios::Conditions gather(int pipeline) const;
    bool told_again(const Observation& observation);
    void follow(const Observation& observation);
    /// The interval that the readings are of.
    const IterationTrend& interval_of(const Observation& observation);

    TrendFinder trend_;
    std::deque<IterationTrend> history_;  ///< of the intervals under the present plan, the latest first
    scenarios::Plan followed_;            ///< that plan
    std::size_t late_ = 0;                ///< intervals by which readings come late, as far as is known
    bool current_ = true;
    LinkStates links_;
    GpuPaces paces_;
    scenarios::Conditions conditions_;
    int version_ = 0;
    std::vector<Duration> told_;  ///< [ranks] compute times of the last new measurements, and their plan
    scenarios::Plan told_under_;
    int repeats_ = 0;
};

}  // namespace headway::policies
