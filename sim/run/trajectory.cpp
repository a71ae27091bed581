#include "sim/run/trajectory.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace headway::sim {
namespace {

constexpr int kVainRecoveries = 10;  // in a row, without a new iteration: then the run ends
const Duration kLongestRun = Duration::seconds(100.0 * 365 * 86400);

}  // namespace

Trajectory::Trajectory(std::shared_ptr<Site> site, scenarios::RunSink* sink)
    : site_(std::move(site)),
      scenario_(site_->scenario),
      topology_(site_->topology),
      timeline_(site_->timeline),
      fleet_(site_->fleet),
      facility_(scenario_.cluster, timeline_.arrivals()),
      reporter_(scenario_, timeline_, sink),
      telemetry_(scenario_.sensors) {
    start(scenario_.seed);
}

void Trajectory::start(std::uint64_t seed) {
    seed_ = seed;
    current_ = site_->prepared(site_->facts.initial_plan);
    now_ = Duration();
    environment_until_ = Duration();
    environment_since_ = Duration::nanoseconds(-1);
    busy_ = current_->busy;
    fleet_.start(site_->healthy.surroundings, busy_);
    facility_.start();
    reporter_.start();
    telemetry_.start(seed);
    attribution_.clear();
    last_duration_ = current_->healthy.duration;
    quiet_.is = false;
    drawn_ = completed_ = furthest_ = 0;
    vain_recoveries_ = 0;
    checkpoints_ = {{0, Duration()}};
    last_save_ = Duration();
    next_loss_ = 0;
    outages_.clear();
    broken_off_ = lost_at_ = Duration();
    lingering_.clear();
    speed_time_.assign(busy_.size(), 0.0);
    seconds_.assign(busy_.size(), 0.0);
    summaries_.assign(busy_.size(), {});
    for (std::size_t gpu = 0; gpu < summaries_.size(); ++gpu) {
        summaries_[gpu].gpu = static_cast<int>(gpu);
        summaries_[gpu].max_temperature_c =
            fleet_.temperature_c(static_cast<int>(gpu), site_->healthy.surroundings[gpu]);
    }
}

bool Trajectory::ended() const {
    if (vain_recoveries_ >= kVainRecoveries || now_ >= kLongestRun) return true;
    return scenario_.run.time ? now_ >= *scenario_.run.time : completed_ >= scenario_.run.iterations;
}

void Trajectory::refresh_environment() {
    if (now_ >= environment_since_ && now_ < environment_until_ && environment_since_ >= Duration()) return;
    environment_ = timeline_.environment(now_);
    environment_since_ = now_;
    environment_until_ = timeline_.next_change(now_);
    quiet_.is = false;
}

void Trajectory::cool(Duration pause) {
    refresh_environment();
    fleet_.cool(environment_.surroundings, pause);
    quiet_.is = false;
}

policies::Measurements Trajectory::run(const scenarios::Plan& plan, int iterations) {
    if (iterations < 0) throw std::invalid_argument("a number of iterations is not negative");
    expect_nothing_lost();
    if (!(plan == current_->plan)) move_to(plan);
    std::vector<Duration> durations;
    durations.reserve(static_cast<std::size_t>(std::min(iterations, 1024)));
    std::optional<policies::Loss> loss;
    MeasurementAverage average(current_->plan);
    for (int left = iterations; left > 0 && !ended();) {
        refresh_environment();
        if (const int trained = train_stretch(average, left, durations); trained > 0) {
            left -= trained;
        } else if (train_one(average) == Step::kTrained) {
            durations.push_back(last_duration_);
            --left;
        } else {
            loss.emplace();
            for (const Outage& outage : outages_)
                loss->gpus.insert(loss->gpus.end(), outage.gpus.begin(), outage.gpus.end());
            loss->noticed_at = now_;
            break;
        }
        if (!ended()) save_if_due();
    }
    if (!loss && ended()) reporter_.disturbances(now_);
    policies::Measurements result;
    if (iterations > 0) result = measured(average);
    result.iterations = std::move(durations);
    result.loss = std::move(loss);
    result.ended = !result.loss && ended();
    result.unavailable_gpus = facility_.out_at(now_);
    return result;
}

policies::Measurements Trajectory::measured(const MeasurementAverage& average) {
    refresh_environment();
    policies::Measurements result;
    result.ranks = average.ranks(fleet_, environment_, busy_, current_->memory);
    result.groups = MeasurementAverage::groups(
        *current_->model, state_with(environment_, fleet_.pace_over(environment_.surroundings, busy_, last_duration_)),
        current_->tensor_bus);
    telemetry_.pass(result);
    return result;
}

std::vector<scenarios::GpuSummary> Trajectory::gpu_summaries() const {
    std::vector<scenarios::GpuSummary> result = summaries_;
    for (std::size_t gpu = 0; gpu < result.size(); ++gpu)
        result[gpu].mean_speed = seconds_[gpu] > 0.0 ? speed_time_[gpu] / seconds_[gpu] : 1.0;
    return result;
}

}  // namespace headway::sim
