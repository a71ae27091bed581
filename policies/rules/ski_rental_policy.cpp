#include "policies/rules/ski_rental_policy.h"

#include "policies/rules/judgement.h"

namespace headway::policies {

namespace {

/// By what changes and not by the candidate's kind: a way back is as dear as the way there.
std::size_t level_of_change(const scenarios::Plan& from, const scenarios::Plan& to) {
    if (from.layout != to.layout) return 2;
    return from.layers_of_cell != to.layers_of_cell || from.gpu_of_rank != to.gpu_of_rank ? 1 : 0;
}

}  // namespace

SkiRentalPolicy::SkiRentalPolicy(RuleParameters parameters) : name_(parameters.text()) {
    parameters.expect_all_known();
}

void SkiRentalPolicy::start_episode(const ClusterFacts&, std::uint64_t) {
    lost_ = {};
    decided_at_ = Duration();
}

Action SkiRentalPolicy::decide(const Observation& observation, const std::vector<Candidate>& candidates) {
    const Duration interval = observation.now - decided_at_;
    decided_at_ = observation.now;
    if (after_loss(candidates)) {
        lost_ = {};
        return {least_lost_time(candidates)};
    }
    std::array<std::size_t, kLevels> best{};
    std::array<double, kLevels> gain{};
    for (std::size_t i = 1; i < candidates.size(); ++i) {
        const std::size_t level = level_of_change(candidates[0].plan, candidates[i].plan);
        const double saved = predicted_gain(candidates[i], candidates[0]);
        if (saved < kLeastGain || saved <= gain[level]) continue;
        best[level] = i;
        gain[level] = saved;
    }
    std::size_t chosen = 0;
    for (std::size_t level = 0; level < kLevels; ++level) {
        if (best[level] == 0) {
            lost_[level] = Duration();
            continue;
        }
        lost_[level] += interval.scaled(gain[level]);
        if (chosen != 0 || (level > 0 && lost_[level] < candidates[best[level]].predicted.pause)) continue;
        chosen = best[level];
        lost_[level] = Duration();
    }
    return {chosen};
}

}  // namespace headway::policies
