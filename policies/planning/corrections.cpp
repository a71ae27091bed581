#include "policies/planning/corrections.h"

#include <algorithm>
#include <cstddef>

namespace headway::policies {

namespace {

constexpr double kMoves = 0.1;  ///< share of the way that the usual correction goes at a decision
constexpr double kUnexplained = 0.985;
constexpr double kMostOfItsOwn = 0.15;  ///< beyond this a new layout is not blamed for what its first interval took
constexpr std::size_t kRemembered = 8;

}  // namespace

void Corrections::start_episode(double model_error) {
    known_.clear();
    usual_ = now_ = model_error;
}

double Corrections::own(const scenarios::Plan& plan) const {
    const auto found = std::find_if(known_.begin(), known_.end(), [&](const Own& known) {
        return known.layout == plan.layout && known.gpu_of_rank == plan.gpu_of_rank;
    });
    return found == known_.end() ? 1.0 : found->factor;
}

void Corrections::observe(const scenarios::Plan& plan, double ratio, bool current) {
    const bool is_known = std::any_of(known_.begin(), known_.end(), [&](const Own& known) {
        return known.layout == plan.layout && known.gpu_of_rank == plan.gpu_of_rank;
    });
    if (!is_known && current) {
        // The first plan of an episode is what the model's error was taken from.
        const double factor = known_.empty() ? 1.0 : ratio / usual_;
        const bool its_own = factor < 1.0 + kMostOfItsOwn && factor > 1.0 - kMostOfItsOwn;
        known_.push_back({plan.layout, plan.gpu_of_rank, its_own ? factor : 1.0});
        if (known_.size() > kRemembered) known_.erase(known_.begin() + 1);
    }
    const double common = ratio / own(plan);
    if (current) usual_ += kMoves * (common - usual_);
    now_ = std::max(common, kUnexplained * usual_);
}

}  // namespace headway::policies
