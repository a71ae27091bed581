#include "policies/rules/judgement.h"

#include <algorithm>

namespace headway::policies {

using scenarios::Duration;

double predicted_gain(const Candidate& candidate, const Candidate& kept) {
    if (candidate.predicted.iteration <= Duration() || kept.predicted.iteration <= Duration()) return 0.0;
    return 1.0 - candidate.predicted.iteration / kept.predicted.iteration;
}

std::size_t fastest_candidate(const std::vector<Candidate>& candidates, double least_gain) {
    std::size_t best = 0;
    double best_gain = 0.0;
    for (std::size_t i = 1; i < candidates.size(); ++i) {
        const double gain = predicted_gain(candidates[i], candidates[0]);
        if (gain < least_gain || gain <= best_gain) continue;
        best = i;
        best_gain = gain;
    }
    return best;
}

bool after_loss(const std::vector<Candidate>& candidates) {
    return candidates.front().kind == Candidate::Kind::kWaitForReplacement;
}

Duration predicted_lost_time(const Candidate& candidate, const Candidate& waiting) {
    const Duration until_replaced = std::max(waiting.predicted.pause, candidate.predicted.pause);
    const Duration training = until_replaced - candidate.predicted.pause;
    if (candidate.predicted.iteration <= Duration() || waiting.predicted.iteration <= Duration()) return until_replaced;
    const double useful = waiting.predicted.iteration / candidate.predicted.iteration;
    const Duration way_back = useful < 1.0 - kLeastGain ? candidate.predicted.way_back : Duration();
    return until_replaced - training.scaled(useful) + way_back;
}

std::size_t least_lost_time(const std::vector<Candidate>& candidates) {
    std::size_t best = 0;
    Duration least = predicted_lost_time(candidates[0], candidates[0]);
    for (std::size_t i = 1; i < candidates.size(); ++i) {
        const Duration lost = predicted_lost_time(candidates[i], candidates[0]);
        if (lost >= least) continue;
        best = i;
        least = lost;
    }
    return best;
}

}  // namespace headway::policies
