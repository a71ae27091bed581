#pragma once

#include <utility>
#include <vector>

#include "scenarios/language/plan.h"

namespace headway::policies {

/// What predictions are multiplied by, from how long iterations took over what was predicted of them.
///
/// What a layout on its GPUs takes longer from its first interval on is its own (contention that the evaluator does not
/// know); it is remembered for when the job comes back to it. What changes later is taken to slow all plans alike. An
/// iteration much faster than predicted says that some GPU or link is not as slow as it seems (noise, measurements that
/// come late), not that all plans are faster.
class Corrections {
  public:
    /// `model_error`: measured over predicted of the healthy initial plan.
    void start_episode(double model_error);
    /// One interval under `plan`: `ratio` of measured over predicted. `current`: the conditions it was predicted under
    /// are those it was measured under.
    void observe(const scenarios::Plan& plan, double ratio, bool current);

    /// Of the prediction of a plan whose layout was not tried yet.
    double common() const { return now_; }
    /// Of a plan's prediction.
    double of(const scenarios::Plan& plan) const { return now_ * own(plan); }

  private:
    struct Own {
        scenarios::Layout layout;
        std::vector<int> gpu_of_rank;
        double factor = 1.0;
    };
    double own(const scenarios::Plan& plan) const;

    std::vector<Own> known_;  ///< the latest last
    double usual_ = 1.0;      ///< common to all plans
    double now_ = 1.0;
};

}  // namespace headway::policies
