// Iterations that need not be looked at one by one.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "sim/run/trajectory.h"

namespace headway::sim {
namespace {

const Duration kLongestHeatedTogether = Duration::seconds(30.0);

/// Whole iterations of `each` that fit into `time`; negative times hold none.
std::int64_t that_fit(Duration time, Duration each) {
    return time < Duration() ? 0 : time.ns() / each.ns();
}

/// The same, and the one that goes beyond its end.
std::int64_t until_past(Duration time, Duration each) {
    return time <= Duration() ? 0 : (time.ns() + each.ns() - 1) / each.ns();
}

}  // namespace

/// Until then nothing changes and nothing is lost.
Duration Trajectory::stretch_end() const {
    const auto& losses = timeline_.losses();
    return next_loss_ < losses.size() ? std::min(environment_until_, losses[next_loss_].at) : environment_until_;
}

int Trajectory::train_stretch(MeasurementAverage& average, int most, std::vector<Duration>& durations) {
    if (reporter_.sink() != nullptr || site_->options.operations) return 0;
    const Duration until = stretch_end();
    const Duration each = quiet_.is ? quiet_.times.duration : last_duration_;
    std::int64_t limit = most;
    if (scenario_.run.time)
        limit = std::min(limit, until_past(*scenario_.run.time - now_, each));
    else
        limit = std::min(limit, scenario_.run.iterations - completed_);
    if (const Duration interval = scenario_.job.checkpoint.interval; interval > Duration())
        limit = std::min(limit, std::max<std::int64_t>(1, until_past(last_save_ + interval - now_, each)));
    limit = std::min(limit, that_fit(until - now_, each));
    if (limit < 1) return 0;
    if (quiet_.is) return repeat_quiet(average, static_cast<int>(limit), durations);
    if (!site_->options.heat_together) return 0;
    limit = std::min(limit, std::max<std::int64_t>(1, that_fit(kLongestHeatedTogether, each)));
    return heat_together(average, static_cast<int>(limit), until, durations);
}

int Trajectory::repeat_quiet(MeasurementAverage& average, int count, std::vector<Duration>& durations) {
    const Duration all = quiet_.times.duration * count;
    durations.insert(durations.end(), static_cast<std::size_t>(count), quiet_.times.duration);
    average.add(quiet_.times, quiet_.speed, count);
    fleet_.rest(all);
    now_ += all;
    drawn_ += count;
    completed(quiet_.times, quiet_.speed, count);
    return count;
}

int Trajectory::heat_together(MeasurementAverage& average, int most, Duration until, std::vector<Duration>& durations) {
    const std::vector<GpuSurroundings>& around = environment_.surroundings;
    const bool drawn = environment_.jitter_spread > 0.0 || environment_.sequence_spread > 0.0;
    const bool at_rest = fleet_.at_rest(around, busy_);
    std::vector<double> pace = fleet_.pace_over(around, busy_, last_duration_ * most);
    ClusterState base = state_with(environment_, pace);
    std::vector<IterationTimes> done;
    Duration end = now_;
    if (drawn) {
        ClusterState state = base;
        for (int i = 0; i < most; ++i) {
            state.paces = base.paces;
            state.micro_batch_factor.clear();
            draw(state, current_->plan, drawn_ + i);
            IterationTimes times = current_->model->steady(state, &base);
            if (end + times.duration > until) break;
            end += times.duration;
            done.push_back(std::move(times));
        }
    } else {
        IterationTimes times = current_->model->steady(base);
        if (!at_rest && std::abs(times.duration / last_duration_ - 1.0) > 0.02) {
            pace = fleet_.pace_over(around, busy_, times.duration * most);
            base.paces = paces_of(topology_, environment_, pace);
            times = current_->model->steady(base);
        }
        const auto count =
            static_cast<std::size_t>(std::min<std::int64_t>(most, that_fit(until - now_, times.duration)));
        end += times.duration * static_cast<std::int64_t>(count);
        done.assign(count, times);
    }
    if (done.empty()) return 0;

    const Fleet before = fleet_;
    if (!fleet_.advance(around, busy_, end - now_).empty()) {
        fleet_ = before;  // one by one, to find the iteration in which it shuts down
        return 0;
    }
    for (std::size_t gpu = 0; gpu < pace.size(); ++gpu) pace[gpu] *= environment_.compute_share[gpu];
    now_ = end;
    drawn_ += static_cast<std::int64_t>(done.size());
    for (const IterationTimes& times : done) {
        durations.push_back(times.duration);
        average.add(times, pace);
        completed(times, pace, 1);
    }
    last_duration_ = done.back().duration;
    busy_ = busy_of(current_->plan, done.back(), scenario_.cluster.gpus());
    quiet_.is = at_rest && !drawn && fleet_.at_rest(around, busy_);
    if (quiet_.is) {
        quiet_.times = std::move(done.back());
        quiet_.speed = std::move(pace);
    }
    return static_cast<int>(done.size());
}

}  // namespace headway::sim
