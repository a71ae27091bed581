#include "policies/planning/conditions.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace headway::policies {

ConditionsEstimator::ConditionsEstimator(const scenarios::Cluster& cluster) : links_(cluster), paces_(cluster) {}

void ConditionsEstimator::start_episode(double model_error) {
    links_.start_episode();
    paces_.start_episode(model_error);
    conditions_ = scenarios::Conditions();
    ++version_;
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
