#include "policies/planning/conditions.h"

#include <algorithm>

namespace headway::policies {

ConditionsEstimator::ConditionsEstimator(const scenarios::Cluster& cluster) : links_(cluster), paces_(cluster) {}

void ConditionsEstimator::start_episode() {
    links_.start_episode();
    paces_.start_episode();
    conditions_ = scenarios::Conditions();
    ++version_;
}

void ConditionsEstimator::update(const Observation& observation, const scenarios::IterationCosts& costs) {
    const bool links = links_.update(observation, costs, paces_.noise());
    const bool paces = paces_.update(observation, costs, links_.fabric());
    if (!links && !paces) return;

    scenarios::Conditions now;
    now.gpus = paces_.paces();
    if (!links_.fabric().empty())
        for (std::size_t gpu = 0; gpu < now.gpus.size(); ++gpu)
            now.gpus[gpu].fabric = links_.fabric()[static_cast<std::size_t>(paces_.node_of(static_cast<int>(gpu)))];
    const auto healthy = [](const scenarios::GpuPace& pace) { return pace == scenarios::GpuPace(); };
    if (std::all_of(now.gpus.begin(), now.gpus.end(), healthy)) now.gpus.clear();
    links_.put(now, observation.plan.layout.pipeline);
    if (now == conditions_) return;
    conditions_ = std::move(now);
    ++version_;
}

}  // namespace headway::policies
