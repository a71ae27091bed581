#include "backend/cluster/run_reporter.h"

#include <algorithm>

#include "backend/slowdown/operation_costs.h"
#include "scenarios/costs/iteration_costs.h"

namespace headway::backend {

using scenarios::Duration;

RunReporter::RunReporter(const scenarios::Scenario& scenario, scenarios::RunSink* sink, double pace, bool operations)
    : scenario_(scenario), sink_(sink), pace_(pace), operations_(operations) {
    start_episode();
}

void RunReporter::start_episode() {
    const auto gpus = static_cast<std::size_t>(scenario_.cluster.gpus());
    marks_.clear();
    in_force_.assign(scenario_.disturbances.size(), 0);
    for (std::size_t i = 0; i < scenario_.disturbances.size(); ++i) {
        const scenarios::Disturbance& d = scenario_.disturbances[i];
        marks_.insert({d.start, {static_cast<int>(i), true}});
        if (d.duration) marks_.insert({d.start + *d.duration, {static_cast<int>(i), false}});
    }
    speed_.assign(gpus, {});
    summaries_.assign(gpus, {});
    for (std::size_t gpu = 0; gpu < gpus; ++gpu) summaries_[gpu].gpu = static_cast<int>(gpu);
    next_telemetry_ = Duration();
}

void RunReporter::take_up(const scenarios::Plan& plan) {
    plan_ = plan;
    declared_.clear();
    const scenarios::IterationCosts costs = scenarios::iteration_costs(scenario_.job, scenario_.cluster, plan);
    for (std::size_t rank = 0; rank < plan.gpu_of_rank.size(); ++rank)
        declared_.push_back(OperationCosts(costs, scenario_.cluster, plan, static_cast<int>(rank)).compute());
    fastest_ = Duration();
}

scenarios::TimeShares RunReporter::mean_of(const std::vector<RankShares>& shares, Duration duration) const {
    scenarios::TimeShares mean;
    const auto ranks = static_cast<std::int64_t>(shares.size());
    for (const RankShares& share : shares) {
        mean.compute_ns += share.compute.ns();
        mean.tensor_ns += share.tensor.ns();
        mean.data_ns += share.data.ns();
        mean.pipeline_ns += share.pipeline.ns();
    }
    for (std::int64_t* part : {&mean.compute_ns, &mean.tensor_ns, &mean.data_ns, &mean.pipeline_ns}) *part /= ranks;
    mean.bubble_ns = duration.ns() - mean.compute_ns - mean.tensor_ns - mean.data_ns - mean.pipeline_ns;
    return mean;
}

std::vector<double> RunReporter::speeds_of(const std::vector<RankShares>& shares, Duration duration, bool counts) {
    std::vector<double> speeds(shares.size(), 1.0);
    for (std::size_t rank = 0; rank < shares.size(); ++rank) {
        if (shares[rank].compute <= Duration()) continue;
        const int gpu = plan_.gpu_of_rank[rank];
        const double ratio = declared_[rank] / shares[rank].compute;
        double& best = best_[scenario_.cluster.gpu_type(gpu).name];
        best = std::max(best, ratio);
        speeds[rank] = pace_ > 0.0 ? ratio * pace_ : ratio / best;
        if (!counts) continue;
        Speed& sum = speed_[static_cast<std::size_t>(gpu)];
        scenarios::GpuSummary& summary = summaries_[static_cast<std::size_t>(gpu)];
        sum.weighted += speeds[rank] * duration.s();
        sum.seconds += duration.s();
        summary.mean_speed = sum.weighted / sum.seconds;
        summary.min_speed = std::min(summary.min_speed, speeds[rank]);
    }
    return speeds;
}

void RunReporter::learn(const std::vector<RankStep>&, const std::vector<RankShares>& shares, Duration duration) {
    speeds_of(shares, duration, false);
    if (fastest_ > Duration() && duration >= fastest_) return;
    fastest_ = duration;
    fastest_shares_ = mean_of(shares, duration);
}

void RunReporter::disturbances(Duration until) {
    while (!marks_.empty() && marks_.begin()->first <= until) {
        const auto [at, mark] = *marks_.begin();
        marks_.erase(marks_.begin());
        in_force_[static_cast<std::size_t>(mark.disturbance)] = mark.begins ? 1 : 0;
        if (sink_ != nullptr) sink_->disturbance({at.ns(), mark.disturbance, mark.begins});
    }
}

void RunReporter::iteration(std::int64_t index, Duration start, Duration duration, const std::vector<RankStep>& ranks,
                            const std::vector<RankShares>& shares) {
    disturbances(start);
    if (fastest_ <= Duration() || duration < fastest_) {
        fastest_ = duration;
        fastest_shares_ = mean_of(shares, duration);
    }
    const std::vector<double> speeds = speeds_of(shares, duration, true);
    if (sink_ == nullptr) return;
    scenarios::IterationEvent event;
    event.index = index;
    event.start_ns = start.ns();
    event.duration_ns = duration.ns();
    event.shares = fastest_shares_;
    event.shares.straggling_ns = (duration - fastest_).ns();
    event.disturbance_cost_ns.assign(scenario_.disturbances.size(), 0);
    if (const std::int64_t causes = std::count(in_force_.begin(), in_force_.end(), 1); causes > 0)
        for (std::size_t i = 0; i < in_force_.size(); ++i)
            if (in_force_[i]) event.disturbance_cost_ns[i] = event.shares.straggling_ns / causes;
    event.loss = ranks.front().step.loss;
    sink_->iteration(event);
    if (operations_ && sink_->wants_operations()) sink_->operations(index, event.start_ns, timeline_of(plan_, ranks));
    telemetry(start + duration, ranks, speeds);
}

void RunReporter::telemetry(Duration now, const std::vector<RankStep>& ranks, const std::vector<double>& speeds) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        double& highest = summaries_[static_cast<std::size_t>(plan_.gpu_of_rank[rank])].max_temperature_c;
        highest = std::max(highest, ranks[rank].sensors.temperature_c.value_or(scenario_.cluster.facility.inlet.value));
    }
    if (now < next_telemetry_) return;
    next_telemetry_ = now + scenario_.telemetry_period;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        const int gpu = plan_.gpu_of_rank[rank];
        const GpuReading& sensors = ranks[rank].sensors;
        const scenarios::GpuType& type = scenario_.cluster.gpu_type(gpu);
        scenarios::TelemetryEvent event;
        event.time_ns = now.ns();
        event.gpu = gpu;
        event.temperature_c = sensors.temperature_c.value_or(scenario_.cluster.facility.inlet.value);
        event.sm_clock_mhz = sensors.sm_clock_mhz.value_or(type.boost_clock.value);
        event.power_w = sensors.power_w.value_or(type.idle_power.value);
        event.speed = speeds[rank];
        event.throttle_reasons = sensors.throttle_reasons.value_or(0);
        sink_->telemetry(event);
    }
}

void RunReporter::pause(const scenarios::PauseEvent& event) {
    disturbances(Duration::nanoseconds(event.start_ns));
    if (sink_ != nullptr) sink_->pause(event);
}

void RunReporter::log(scenarios::LogEvent::Severity severity, Duration time, const std::string& text) {
    if (sink_ != nullptr) sink_->log({severity, time.ns(), text});
}

}  // namespace headway::backend
