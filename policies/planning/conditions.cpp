#include "policies/planning/conditions.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace headway::policies {

ConditionsEstimator::ConditionsEstimator(const scenarios::Cluster& cluster) : links_(cluster), paces_(cluster) {}

void ConditionsEstimator::start_episode(double model_error) {
    told_.clear();
    told_under_ = scenarios::Plan();
    repeats_ = 0;
    links_.start_episode();
    paces_.start_episode(model_error);
    conditions_ = scenarios::Conditions();
    ++version_;
}

/// Measurements that come late are told again and again until the first new ones arrive: that says nothing about noise.
bool ConditionsEstimator::told_again(const Observation& observation) {
    constexpr int kLatest = 2;
    const bool same =
        observation.plan == told_under_ && !observation.ranks.empty() &&
        std::equal(observation.ranks.begin(), observation.ranks.end(), told_.begin(), told_.end(),
                   [](const RankObservation& rank, Duration told) { return rank.measured.compute == told; });
    if (same) return repeats_++ < kLatest;
    repeats_ = 0;
    told_under_ = observation.plan;
    told_.clear();
    for (const RankObservation& rank : observation.ranks) told_.push_back(rank.measured.compute);
    return false;
}

scenarios::Conditions ConditionsEstimator::gather(int pipeline) const {
    scenarios::Conditions now;
    now.gpus = paces_.paces();
    if (!links_.fabric().empty())
        for (std::size_t gpu = 0; gpu < now.gpus.size(); ++gpu)
            now.gpus[gpu].fabric = links_.fabric()[static_cast<std::size_t>(paces_.node_of(static_cast<int>(gpu)))];
    const auto healthy = [](const scenarios::GpuPace& pace) { return pace == scenarios::GpuPace(); };
    if (std::all_of(now.gpus.begin(), now.gpus.end(), healthy)) now.gpus.clear();
    links_.put(now, pipeline);
    return now;
}

void ConditionsEstimator::update(const Observation& observation, const scenarios::IterationCosts& costs,
                                 const Predict& predict) {
    if (told_again(observation)) return;
    const bool links = links_.update(observation, costs, paces_.noise());
    const bool paces = paces_.update(observation, costs, links_.fabric());
    if (!links && !paces) return;

    const int pipeline = observation.plan.layout.pipeline;
    scenarios::Conditions now = gather(pipeline);
    if (links && links_.ambiguous()) {
        const auto off = [&](const scenarios::Conditions& conditions) {
            return std::abs(std::log(predict(conditions) / observation.iteration));
        };
        links_.take_for_delays(false);
        now = gather(pipeline);
        links_.take_for_delays(true);
        scenarios::Conditions late = gather(pipeline);
        if (off(late) < off(now))
            now = std::move(late);
        else
            links_.take_for_delays(false);
    }
    if (now == conditions_) return;
    conditions_ = std::move(now);
    ++version_;
}

}  // namespace headway::policies
