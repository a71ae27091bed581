#include "policies/planning/conditions.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace headway::policies {

namespace {

constexpr int kLatestReadings = 2;       ///< intervals that measurements may come late
constexpr double kSameIteration = 0.01;  ///< of iterations
constexpr double kSureOfReadings = 3.0;  ///< deviations

}  // namespace

ConditionsEstimator::ConditionsEstimator(const scenarios::Cluster& cluster) : links_(cluster), paces_(cluster) {}

void ConditionsEstimator::start_episode(double model_error) {
    trend_.start_episode();
    history_.clear();
    followed_ = scenarios::Plan();
    late_ = 0;
    current_ = true;
    told_.clear();
    told_under_ = scenarios::Plan();
    repeats_ = 0;
    links_.start_episode();
    paces_.start_episode(model_error);
    conditions_ = scenarios::Conditions();
    ++version_;
}

void ConditionsEstimator::follow(const Observation& observation) {
    if (!(followed_ == observation.plan)) {
        followed_ = observation.plan;
        trend_.plan_changed();
        history_.clear();
    }
    if (observation.iteration <= Duration()) return;
    const std::vector<Duration> mean{observation.iteration};
    history_.push_front(trend_.take(observation.iterations.empty() ? mean : observation.iterations));
    if (history_.size() > kLatestReadings + 1) history_.pop_back();
}

/// A rank's times add up to the iteration: readings are of the interval whose iterations took what ranks account for.
const IterationTrend& ConditionsEstimator::interval_of(const Observation& observation) {
    double accounted = 0.0;
    for (const RankObservation& rank : observation.ranks) {
        const RankMeasurement& measured = rank.measured;
        accounted += (measured.compute + measured.exposed_communication + measured.idle).s();
    }
    const auto ranks = static_cast<double>(observation.ranks.size());
    accounted /= ranks;
    const auto off = [&](std::size_t late) { return std::abs(std::log(accounted / history_[late].mean.s())); };
    late_ = std::min(late_, history_.size() - 1);
    const double alike = kSameIteration + kSureOfReadings * paces_.noise() / std::sqrt(ranks);
    for (std::size_t late = 0; accounted > 0.0 && late < history_.size(); ++late)
        if (off(late) + alike < off(late_)) late_ = late;
    return history_[late_];
}

/// Measurements that come late are told again and again until the first new ones arrive: that says nothing about noise.
bool ConditionsEstimator::told_again(const Observation& observation) {
    const bool same =
        observation.plan == told_under_ && !observation.ranks.empty() &&
        std::equal(observation.ranks.begin(), observation.ranks.end(), told_.begin(), told_.end(),
                   [](const RankObservation& rank, Duration told) { return rank.measured.compute == told; });
    if (same) return repeats_++ < kLatestReadings;
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
    follow(observation);
    const bool known = !observation.ranks.empty() && observation.iteration > Duration();
    const IterationTrend* of = known ? &interval_of(observation) : nullptr;
    if (of != nullptr) current_ = std::abs(std::log(of->now / history_.front().now)) < kSameIteration;
    if (told_again(observation)) return;
    const bool links = links_.update(observation, costs, paces_.noise());
    const bool paces = paces_.update(observation, costs, links_.fabric(), of != nullptr ? of->share : 1.0);
    if (!links && !paces) return;

    const int pipeline = observation.plan.layout.pipeline;
    scenarios::Conditions now = gather(pipeline);
    if (links && links_.ambiguous()) {
        const auto off = [&](const scenarios::Conditions& conditions) {
            return std::abs(std::log(predict(conditions) / (of != nullptr ? of->now : observation.iteration)));
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
