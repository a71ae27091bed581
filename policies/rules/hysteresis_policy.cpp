#include "policies/rules/hysteresis_policy.h"

#include "policies/rules/judgement.h"

namespace headway::policies {

HysteresisPolicy::HysteresisPolicy(RuleParameters parameters)
    : name_(parameters.text()),
      threshold_(parameters.number("threshold", 0.02, 0.0, 1.0)),
      patience_(parameters.count("patience", 1, 1, 1000)),
      horizon_(parameters.duration("horizon", Duration::seconds(1800.0))) {
    parameters.expect_all_known();
}

Action HysteresisPolicy::decide(const Observation&, const std::vector<Candidate>& candidates) {
    if (after_loss(candidates)) {
        seen_in_a_row_ = 0;
        return {least_lost_time(candidates)};
    }
    std::size_t best = 0;
    Duration best_net;
    bool exceeds = false;
    for (std::size_t i = 1; i < candidates.size(); ++i) {
        const double gain = predicted_gain(candidates[i], candidates[0]);
        if (gain < kLeastGain || gain < threshold_) continue;
        exceeds = true;
        const Duration net = horizon_.scaled(gain) - candidates[i].predicted.pause;
        if (net <= best_net) continue;
        best = i;
        best_net = net;
    }
    seen_in_a_row_ = exceeds ? seen_in_a_row_ + 1 : 0;
    if (best == 0 || seen_in_a_row_ < patience_) return {0};
    seen_in_a_row_ = 0;
    return {best};
}

}  // namespace headway::policies
