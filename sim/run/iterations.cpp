// How a trajectory trains: one iteration after the other, and the checkpoints between them.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "scenarios/language/random.h"
#include "sim/run/time_shares.h"
#include "sim/run/trajectory.h"

namespace headway::sim {
namespace {

constexpr int kExactChanges = 8;        // more than that within one iteration are averaged over it
constexpr int kAveragedChanges = 1000;  // and these are looked at

std::size_t at_index(int i) {
    return static_cast<std::size_t>(i);
}

/// Log-normal with mean 1 and this coefficient of variation.
class LogNormal {
  public:
    explicit LogNormal(double variation)
        : variance_(scenarios::portable_log(1.0 + variation * variation)), deviation_(std::sqrt(variance_)) {}
    std::vector<double> draw(scenarios::RandomStream& stream, std::size_t count) const {
        std::vector<double> values(count);
        for (double& value : values) value = deviation_ * stream.normal() - 0.5 * variance_;
        scenarios::portable_exp(values);
        return values;
    }

  private:
    double variance_;
    double deviation_;
};

}  // namespace

ClusterState Trajectory::state_with(const Environment& environment, const std::vector<double>& thermal_pace) const {
    return {paces_of(topology_, environment, thermal_pace), environment, {}};
}

void Trajectory::draw(ClusterState& state, const scenarios::Plan& plan, std::int64_t execution) const {
    const auto iteration = static_cast<std::uint64_t>(execution);
    if (const double spread = state.environment.jitter_spread; spread > 0.0) {
        const LogNormal distribution(spread);
        scenarios::RandomStream stream(seed_, "jitter", iteration);
        const std::vector<double> times = distribution.draw(stream, plan.gpu_of_rank.size());
        for (std::size_t rank = 0; rank < times.size(); ++rank) {
            scenarios::GpuPace& pace = state.paces[at_index(plan.gpu_of_rank[rank])];
            pace.compute /= times[rank];
            pace.memory /= times[rank];
        }
    }
    if (const double spread = state.environment.sequence_spread; spread > 0.0) {
        // The global batch has the same number of tokens in every iteration: the mean stays 1.
        double sum = 0.0;
        std::size_t count = 0;
        for (const int micro_batches : plan.micro_batches_of_replica) count += at_index(micro_batches);
        const LogNormal distribution(spread);
        scenarios::RandomStream stream(seed_, "sequence lengths", iteration);
        state.micro_batch_factor = distribution.draw(stream, count);
        for (const double factor : state.micro_batch_factor) sum += factor;
        for (double& factor : state.micro_batch_factor) factor *= static_cast<double>(count) / sum;
    }
}

namespace {

void average_into(std::vector<double>& sum, const std::vector<double>& values, double weight) {
    if (sum.size() < values.size()) sum.resize(values.size(), 0.0);
    for (std::size_t i = 0; i < values.size(); ++i) sum[i] += values[i] * weight;
}

/// Time-weighted mean of environments, for iterations in which more changes than are followed one by one. Of very many
/// (a link that flaps every millisecond) the first ones stand for all.
Environment mean_environment(const Timeline& timeline, Duration start, Duration end) {
    Duration covered = start;
    for (int changes = 0; covered < end && changes < kAveragedChanges; ++changes)
        covered = timeline.next_change(covered);
    end = std::min(end, covered);
    Environment mean = timeline.environment(start);
    for (auto* values : {&mean.compute_share, &mean.memory_share, &mean.fabric_factor, &mean.node_network,
                         &mean.nic_factor, &mean.uplink_factor})
        std::fill(values->begin(), values->end(), 0.0);
    for (Duration at = start; at < end;) {
        const Duration next = std::min(end, timeline.next_change(at));
        const Environment now = timeline.environment(at);
        const double weight = (next - at) / (end - start);
        average_into(mean.compute_share, now.compute_share, weight);
        average_into(mean.memory_share, now.memory_share, weight);
        average_into(mean.fabric_factor, now.fabric_factor, weight);
        average_into(mean.node_network, now.node_network, weight);
        average_into(mean.nic_factor, now.nic_factor, weight);
        average_into(mean.uplink_factor, now.uplink_factor, weight);
        at = next;
    }
    return mean;
}

}  // namespace

IterationTimes Trajectory::compute(const std::vector<double>& thermal_pace) {
    ClusterState state = state_with(environment_, thermal_pace);
    const bool drawn = environment_.jitter_spread > 0.0 || environment_.sequence_spread > 0.0;
    IterationTimes times;
    if (drawn) {
        const ClusterState base = state;
        draw(state, current_->plan, drawn_);
        times = current_->model->steady(state, &base);
    } else {
        times = current_->model->steady(state);
    }
    if (site_->options.operations) last_states_ = {{Duration(), state}};
    if (environment_until_ >= now_ + times.duration) return times;
    return compute_changing(state, std::move(times), thermal_pace);
}

/// Something changes before the iteration ends. Changes are taken one by one: each may move the end, and a link that
/// comes back moves it far ahead of later ones.
IterationTimes Trajectory::compute_changing(const ClusterState& first, IterationTimes times,
                                            const std::vector<double>& thermal_pace) {
    const bool drawn = environment_.jitter_spread > 0.0 || environment_.sequence_spread > 0.0;
    std::vector<std::pair<Duration, ClusterState>> states{{Duration(), first}};
    for (Duration at = timeline_.next_change(now_); at < now_ + times.duration; at = timeline_.next_change(at)) {
        if (static_cast<int>(states.size()) > kExactChanges) {
            const Environment mean = mean_environment(timeline_, now_, now_ + times.duration);
            ClusterState averaged = state_with(mean, thermal_pace);
            draw(averaged, current_->plan, drawn_);
            if (site_->options.operations) last_states_ = {{Duration(), averaged}};
            return current_->model->steady(averaged, drawn ? &averaged : nullptr);
        }
        ClusterState next = state_with(timeline_.environment(at), thermal_pace);
        next.environment.jitter_spread = environment_.jitter_spread;
        next.environment.sequence_spread = environment_.sequence_spread;
        draw(next, current_->plan, drawn_);
        states.emplace_back(at - now_, std::move(next));
        times = current_->model->changing(states);
        if (site_->options.operations) last_states_ = states;
    }
    return times;
}

Trajectory::Step Trajectory::train_one(MeasurementAverage& average) {
    const Duration start = now_;
    reporter_.disturbances(start);

    // The clock depends on how long the iteration takes and the other way round: one pass from the last duration, one
    // more where that was off.
    const bool at_rest = fleet_.at_rest(environment_.surroundings, busy_);
    std::vector<double> pace = fleet_.pace_over(environment_.surroundings, busy_, last_duration_);
    IterationTimes times = compute(pace);
    if (!fleet_.settled() && std::abs(times.duration / last_duration_ - 1.0) > 0.02) {
        std::vector<double> corrected = fleet_.pace_over(environment_.surroundings, busy_, times.duration);
        if (corrected != pace) {
            pace = std::move(corrected);
            times = compute(pace);
        }
    }

    if (const std::optional<Duration> loss = next_loss(current_->plan, start + times.duration)) {
        const Duration at = std::max(*loss, start);
        fleet_.advance(environment_.surroundings, busy_, at - start);
        lose(current_->plan, at, {});
        return Step::kLost;
    }
    const std::vector<int> shut_down = fleet_.advance(environment_.surroundings, busy_, times.duration);
    if (!shut_down.empty()) {
        lose(current_->plan, start + times.duration, shut_down);
        return Step::kLost;
    }

    now_ = start + times.duration;
    last_duration_ = times.duration;
    std::vector<double> speed(pace.size(), 1.0);
    for (std::size_t gpu = 0; gpu < pace.size(); ++gpu) speed[gpu] = pace[gpu] * environment_.compute_share[gpu];
    average.add(times, speed);
    ++drawn_;
    report(times, start, pace);
    busy_ = busy_of(current_->plan, times, scenario_.cluster.gpus());
    completed(times, speed, 1);
    reporter_.sensors(now_, fleet_, environment_, busy_, speed);
    reporter_.links(now_, *current_->model, times.duration);

    quiet_.is = at_rest && environment_until_ >= now_ && environment_.jitter_spread <= 0.0 &&
                environment_.sequence_spread <= 0.0 && fleet_.at_rest(environment_.surroundings, busy_);
    if (quiet_.is) {
        quiet_.times = std::move(times);
        quiet_.speed = std::move(speed);
    }
    return Step::kTrained;
}

void Trajectory::completed(const IterationTimes& times, const std::vector<double>& speed, int iterations) {
    completed_ += iterations;
    if (completed_ > furthest_) vain_recoveries_ = 0;
    furthest_ = std::max(furthest_, completed_);
    const double seconds = times.duration.s() * iterations;
    for (const int gpu : current_->plan.gpu_of_rank) {
        const auto g = at_index(gpu);
        scenarios::GpuSummary& summary = summaries_[g];
        speed_time_[g] += speed[g] * seconds;
        seconds_[g] += seconds;
        summary.min_speed = std::min(summary.min_speed, speed[g]);
        summary.max_temperature_c =
            std::max(summary.max_temperature_c, fleet_.temperature_c(gpu, environment_.surroundings[g]));
    }
}

void Trajectory::save_if_due() {
    const scenarios::Checkpointing& policy = scenario_.job.checkpoint;
    if (policy.interval <= Duration() || now_ - last_save_ < policy.interval) return;
    if (checkpoints_.back().durable > now_) return;  // the last save is still being written
    const Duration start = now_;
    const Duration pause = current_->checkpoint.save;
    cool(pause);
    now_ += pause;
    Duration durable = now_;
    if (policy.asynchronous) durable += current_->checkpoint.state / scenario_.cluster.facility.storage_write;
    checkpoints_.push_back({completed_, durable});
    if (checkpoints_.size() > 2) checkpoints_.erase(checkpoints_.begin());
    last_save_ = start;
    if (reporter_.sink() != nullptr) {
        scenarios::PauseEvent event;
        event.reason = scenarios::PauseEvent::Reason::kCheckpoint;
        event.start_ns = start.ns();
        event.duration_ns = pause.ns();
        event.what = "checkpoint of iteration " + std::to_string(completed_);
        reporter_.sink()->pause(event);
    }
}

}  // namespace headway::sim
