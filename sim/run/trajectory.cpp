#include "sim/run/trajectory.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

#include "scenarios/costs/memory.h"
#include "scenarios/language/config_error.h"
#include "scenarios/language/plan_check.h"
#include "scenarios/language/random.h"
#include "scenarios/language/strategy.h"
#include "scenarios/language/value_text.h"
#include "sim/run/time_shares.h"

namespace headway::sim {
namespace {

constexpr std::size_t kPreparedPlans = 4;
constexpr int kHealthyPasses = 4;
constexpr double kSlowestPace = 1e-6;  // of causes that come together: an iteration stays within what a clock counts
constexpr int kVainRecoveries = 10;    // in a row, without a new iteration: then the run ends
const Duration kLongestRun = Duration::seconds(100.0 * 365 * 86400);
constexpr int kExactChanges = 8;        // more than that within one iteration are averaged over it
constexpr int kAveragedChanges = 1000;  // and these are looked at

std::size_t at_index(int i) {
    return static_cast<std::size_t>(i);
}

/// Log-normal with mean 1 and this coefficient of variation.
double lognormal(scenarios::RandomStream& stream, double variation) {
    const double variance = scenarios::portable_log(1.0 + variation * variation);
    return scenarios::portable_exp(std::sqrt(variance) * stream.normal() - 0.5 * variance);
}

std::string gib_text(scenarios::Bytes bytes) {
    const double value = std::round(bytes.in_gib() * 10.0) / 10.0;
    std::string text = std::to_string(value);
    return text.substr(0, text.find('.') + 2) + " GiB";
}

}  // namespace

Trajectory::Trajectory(const scenarios::Scenario& scenario, scenarios::RunSink* sink, const SimulationOptions& options)
    : scenario_(scenario),
      options_(options),
      facts_{scenario.job, scenario.cluster, scenarios::initial_plan(scenario.strategy, scenario.job, scenario.cluster),
             scenario.strategy.adapt, Duration()},
      topology_(scenario.cluster),
      network_(topology_),
      timeline_(scenario),
      fleet_(scenario.cluster),
      facility_(scenario.cluster, timeline_.arrivals()),
      reporter_(scenario, timeline_, sink) {
    const auto shortages = scenarios::memory_shortages(scenario.job, scenario.cluster, facts_.initial_plan);
    if (!shortages.empty()) {
        std::string message = "the plan does not fit in memory:";
        for (const scenarios::MemoryShortage& s : shortages)
            message += "\n  stage " + std::to_string(s.stage) + " needs " + gib_text(s.needed) + " on GPU " +
                       std::to_string(s.gpu) + ", which has " + gib_text(s.available);
        throw scenarios::ConfigError(message);
    }
    healthy_environment_ = timeline_.healthy();
    const Prepared& initial = prepare(facts_.initial_plan);
    if (initial.shuts_down >= 0) {
        const scenarios::GpuType& gpu = scenario.cluster.gpu_type(initial.shuts_down);
        throw scenarios::ConfigError(
            "cluster.facility.inlet: " + scenarios::format_value(scenario.cluster.facility.inlet) +
            " is not allowed (GPU " + std::to_string(initial.shuts_down) + ", " + gpu.name +
            ", reaches its shutdown temperature of " + scenarios::format_value(gpu.thermal.shutdown) +
            " under this job)");
    }
    healthy_iteration_ = initial.healthy.duration;
    facts_.healthy_iteration = healthy_iteration_;
    start(scenario.seed);
}

std::vector<double> Trajectory::busy_of(const scenarios::Plan& plan, const IterationTimes& times) const {
    std::vector<double> busy(at_index(scenario_.cluster.gpus()), -1.0);
    for (int replica = 0; replica < plan.layout.data; ++replica)
        for (int stage = 0; stage < plan.layout.pipeline; ++stage)
            for (int member = 0; member < plan.layout.ranks_per_worker(); ++member)
                busy[at_index(plan.gpu_of_worker(replica, stage, member))] =
                    std::clamp(times.workers[at_index(plan.worker(replica, stage))].compute / times.duration, 0.0, 1.0);
    return busy;
}

Trajectory::Prepared& Trajectory::prepare(const scenarios::Plan& plan) {
    for (auto it = prepared_.begin(); it != prepared_.end(); ++it) {
        if (!(it->first == plan)) continue;
        prepared_.splice(prepared_.begin(), prepared_, it);
        return prepared_.front().second;
    }
    Prepared prepared;
    prepared.number = ++plans_seen_;
    prepared.model = std::make_unique<PlanModel>(scenario_.cluster, topology_, network_, plan,
                                                 scenarios::iteration_costs(scenario_.job, scenario_.cluster, plan),
                                                 scenario_.job.model.tied_embedding, options_, scenario_.job.measured);
    // Heat depends on the load and the load on how long an iteration takes: a few passes where the air is warm, one
    // elsewhere.
    prepared.pace.assign(at_index(scenario_.cluster.gpus()), 1.0);
    prepared.healthy = prepared.model->steady(state_with(healthy_environment_, prepared.pace));
    prepared.busy = busy_of(plan, prepared.healthy);
    for (int pass = 0; pass < kHealthyPasses; ++pass) {
        Fleet::HealthyPace found = fleet_.healthy_pace(healthy_environment_.surroundings, prepared.busy);
        prepared.shuts_down = found.shuts_down;
        if (found.pace == prepared.pace) break;
        prepared.pace = std::move(found.pace);
        prepared.healthy = prepared.model->steady(state_with(healthy_environment_, prepared.pace));
        prepared.busy = busy_of(plan, prepared.healthy);
    }
    prepared.shares = shares_of_healthy(*prepared.model, prepared.healthy);
    prepared.checkpoint = scenarios::checkpoint_costs(scenario_.job, scenario_.cluster, plan);
    for (const scenarios::StageMemory& stage : scenarios::stage_memory(scenario_.job, plan))
        prepared.memory.push_back(stage.total().count());
    if (prepared_.size() >= kPreparedPlans) prepared_.pop_back();
    prepared_.emplace_front(plan, std::move(prepared));
    return prepared_.front().second;
}

void Trajectory::start(std::uint64_t seed) {
    seed_ = seed;
    Prepared& initial = prepare(facts_.initial_plan);
    now_ = Duration();
    environment_until_ = Duration();
    environment_since_ = Duration::nanoseconds(-1);
    busy_ = initial.busy;
    fleet_.start(healthy_environment_.surroundings, busy_);
    facility_.start();
    reporter_.start();
    attribution_.clear();
    last_duration_ = initial.healthy.duration;
    drawn_ = completed_ = furthest_ = 0;
    vain_recoveries_ = 0;
    checkpoints_ = {{0, Duration()}};
    last_save_ = Duration();
    next_loss_ = 0;
    outages_.clear();
    broken_off_ = lost_at_ = Duration();
    lingering_.clear();
    speed_time_.assign(busy_.size(), 0.0);
    seconds_ = 0.0;
    summaries_.assign(busy_.size(), {});
    for (std::size_t gpu = 0; gpu < summaries_.size(); ++gpu) {
        summaries_[gpu].gpu = static_cast<int>(gpu);
        summaries_[gpu].max_temperature_c =
            fleet_.temperature_c(static_cast<int>(gpu), healthy_environment_.surroundings[gpu]);
    }
}

bool Trajectory::ended() const {
    if (vain_recoveries_ >= kVainRecoveries || now_ >= kLongestRun) return true;
    return scenario_.run.time ? now_ >= *scenario_.run.time : completed_ >= scenario_.run.iterations;
}

void Trajectory::expect_nothing_lost() const {
    if (!outages_.empty()) throw std::invalid_argument("the job has lost GPUs: recover first");
}

void Trajectory::check_plan(const scenarios::Plan& plan) const {
    scenarios::check_plan(scenario_.job, scenario_.cluster, plan);
    for (const int gpu : plan.gpu_of_rank)
        if (facility_.is_out(gpu, now_))
            throw std::invalid_argument("the plan uses GPU " + std::to_string(gpu) + ", which is lost");
    for (const scenarios::MemoryShortage& s : scenarios::memory_shortages(scenario_.job, scenario_.cluster, plan))
        throw std::invalid_argument("stage " + std::to_string(s.stage) + " of the plan needs " + gib_text(s.needed) +
                                    " on GPU " + std::to_string(s.gpu) + ", which has " + gib_text(s.available));
}

void Trajectory::refresh_environment() {
    if (now_ >= environment_since_ && now_ < environment_until_ && environment_since_ >= Duration()) return;
    environment_ = timeline_.environment(now_);
    environment_since_ = now_;
    environment_until_ = timeline_.next_change(now_);
}

policies::Measurements Trajectory::run(const scenarios::Plan& plan, int iterations) {
    if (iterations < 0) throw std::invalid_argument("a number of iterations is not negative");
    policies::Measurements result;
    expect_nothing_lost();
    if (!(plan == prepared_.front().first)) move_to(plan);
    Prepared& prepared = prepared_.front().second;
    refresh_environment();
    MeasurementAverage average(plan);
    for (int i = 0; i < iterations; ++i) {
        if (ended()) break;
        if (train_one(prepared, average) == Step::kLost) {
            policies::Loss loss;
            for (const Outage& outage : outages_)
                loss.gpus.insert(loss.gpus.end(), outage.gpus.begin(), outage.gpus.end());
            loss.noticed_at = now_;
            result.loss = std::move(loss);
            break;
        }
        result.iterations.push_back(last_duration_);
        if (!ended()) save_if_due(prepared);
    }
    result.ended = !result.loss && ended();
    result.unavailable_gpus = facility_.out_at(now_);
    if (result.ended) reporter_.disturbances(now_);
    refresh_environment();
    result.ranks = average.ranks(fleet_, environment_, busy_, prepared.memory);
    result.groups = MeasurementAverage::groups(
        *prepared.model, state_with(environment_, fleet_.pace_over(environment_.surroundings, busy_, last_duration_)));
    return result;
}

ClusterState Trajectory::state_with(const Environment& environment, const std::vector<double>& thermal_pace) const {
    ClusterState state;
    state.environment = environment;
    state.paces.resize(thermal_pace.size());
    for (std::size_t gpu = 0; gpu < thermal_pace.size(); ++gpu) {
        scenarios::GpuPace& pace = state.paces[gpu];
        pace.compute = std::max(kSlowestPace, thermal_pace[gpu] * environment.compute_share[gpu]);
        pace.memory = std::max(kSlowestPace, environment.memory_share[gpu]);
        pace.fabric = environment.fabric_factor[at_index(topology_.node_of_gpu(static_cast<int>(gpu)))];
    }
    return state;
}

void Trajectory::draw(ClusterState& state, const scenarios::Plan& plan, std::int64_t execution) const {
    const auto iteration = static_cast<std::uint64_t>(execution);
    if (const double spread = state.environment.jitter_spread; spread > 0.0) {
        scenarios::RandomStream stream(seed_, "jitter", iteration);
        for (const int gpu : plan.gpu_of_rank) {
            const double time = lognormal(stream, spread);
            state.paces[at_index(gpu)].compute /= time;
            state.paces[at_index(gpu)].memory /= time;
        }
    }
    if (const double spread = state.environment.sequence_spread; spread > 0.0) {
        // The global batch has the same number of tokens in every iteration: the mean stays 1.
        double sum = 0.0;
        std::size_t count = 0;
        for (const int micro_batches : plan.micro_batches_of_replica) count += at_index(micro_batches);
        scenarios::RandomStream stream(seed_, "sequence lengths", iteration);
        for (std::size_t m = 0; m < count; ++m) {
            state.micro_batch_factor.push_back(lognormal(stream, spread));
            sum += state.micro_batch_factor.back();
        }
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

IterationTimes Trajectory::compute(Prepared& prepared, const std::vector<double>& thermal_pace) {
    const ClusterState base = state_with(environment_, thermal_pace);
    ClusterState state = base;
    draw(state, prepared.model->plan(), drawn_);
    const bool drawn = environment_.jitter_spread > 0.0 || environment_.sequence_spread > 0.0;
    last_states_ = {{Duration(), state}};
    const auto steady = [&] { return prepared.model->steady(state, drawn ? &base : nullptr); };
    IterationTimes times = steady();
    if (environment_until_ >= now_ + times.duration) return times;

    // Something changes before the iteration ends. Changes are taken one by one: each may move the end, and a link that
    // comes back moves it far ahead of later ones.
    std::vector<std::pair<Duration, ClusterState>> states{{Duration(), state}};
    for (Duration at = timeline_.next_change(now_); at < now_ + times.duration; at = timeline_.next_change(at)) {
        if (static_cast<int>(states.size()) > kExactChanges) {
            const Environment mean = mean_environment(timeline_, now_, now_ + times.duration);
            ClusterState averaged = state_with(mean, thermal_pace);
            draw(averaged, prepared.model->plan(), drawn_);
            last_states_ = {{Duration(), averaged}};
            return prepared.model->steady(averaged, drawn ? &averaged : nullptr);
        }
        ClusterState next = state_with(timeline_.environment(at), thermal_pace);
        next.environment.jitter_spread = environment_.jitter_spread;
        next.environment.sequence_spread = environment_.sequence_spread;
        draw(next, prepared.model->plan(), drawn_);
        states.emplace_back(at - now_, std::move(next));
        times = prepared.model->changing(states);
        last_states_ = states;
    }
    return times;
}

Trajectory::Step Trajectory::train_one(Prepared& prepared, MeasurementAverage& average) {
    const scenarios::Plan& plan = prepared.model->plan();
    const Duration start = now_;
    reporter_.disturbances(start);
    refresh_environment();
    const Environment during = environment_;

    // The clock depends on how long the iteration takes and the other way round: one pass from the last duration, one
    // more where that was off.
    std::vector<double> pace = fleet_.pace_over(during.surroundings, busy_, last_duration_);
    IterationTimes times = compute(prepared, pace);
    if (!fleet_.settled() && std::abs(times.duration / last_duration_ - 1.0) > 0.02) {
        std::vector<double> corrected = fleet_.pace_over(during.surroundings, busy_, times.duration);
        if (corrected != pace) {
            pace = std::move(corrected);
            times = compute(prepared, pace);
        }
    }

    if (const std::optional<Duration> loss = next_loss(plan, start + times.duration)) {
        const Duration at = std::max(*loss, start);
        fleet_.advance(during.surroundings, busy_, at - start);
        lose(plan, at, {});
        return Step::kLost;
    }
    const std::vector<int> shut_down = fleet_.advance(during.surroundings, busy_, times.duration);
    if (!shut_down.empty()) {
        lose(plan, start + times.duration, shut_down);
        return Step::kLost;
    }

    now_ = start + times.duration;
    last_duration_ = times.duration;
    ++drawn_;
    std::vector<double> speed(pace.size(), 1.0);
    for (std::size_t gpu = 0; gpu < pace.size(); ++gpu) speed[gpu] = pace[gpu] * during.compute_share[gpu];
    average.add(times, speed);
    report(prepared, times, start, pace);
    busy_ = busy_of(plan, times);

    seconds_ += times.duration.s();
    for (const int gpu : plan.gpu_of_rank) {
        const auto g = at_index(gpu);
        scenarios::GpuSummary& summary = summaries_[g];
        speed_time_[g] += speed[g] * times.duration.s();
        summary.min_speed = std::min(summary.min_speed, speed[g]);
        summary.max_temperature_c =
            std::max(summary.max_temperature_c, fleet_.temperature_c(gpu, during.surroundings[g]));
    }
    reporter_.sensors(now_, fleet_, during, busy_, speed);
    reporter_.links(now_, *prepared.model, times.duration);
    return Step::kTrained;
}

void Trajectory::report(Prepared& prepared, const IterationTimes& times, Duration start,
                        const std::vector<double>& thermal_pace) {
    if (reporter_.sink() != nullptr) {
        scenarios::IterationEvent event;
        event.index = completed_;
        event.start_ns = start.ns();
        event.duration_ns = times.duration.ns();
        event.repeats = completed_ < furthest_;
        event.shares = shares_of(prepared.shares, times.duration.ns());
        event.disturbance_cost_ns.assign(scenario_.disturbances.size(), 0);
        attribute(prepared, times, start, thermal_pace, event.disturbance_cost_ns);
        reporter_.sink()->iteration(event);
        if (options_.operations && reporter_.sink()->wants_operations())
            reporter_.sink()->operations(event.index, event.start_ns, prepared.model->timeline(last_states_));
    }
    track_lingering(thermal_pace);
    ++completed_;
    if (completed_ > furthest_) vain_recoveries_ = 0;
    furthest_ = std::max(furthest_, completed_);
}

void Trajectory::save_if_due(Prepared& prepared) {
    const scenarios::Checkpointing& policy = scenario_.job.checkpoint;
    if (policy.interval <= Duration() || now_ - last_save_ < policy.interval) return;
    if (checkpoints_.back().durable > now_) return;  // the last save is still being written
    const Duration start = now_;
    const Duration pause = prepared.checkpoint.save;
    refresh_environment();
    fleet_.cool(environment_.surroundings, pause);
    now_ += pause;
    Duration durable = now_;
    if (policy.asynchronous) durable += prepared.checkpoint.state / scenario_.cluster.facility.storage_write;
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

std::vector<scenarios::GpuSummary> Trajectory::gpu_summaries() const {
    std::vector<scenarios::GpuSummary> result = summaries_;
    for (std::size_t gpu = 0; gpu < result.size(); ++gpu)
        result[gpu].mean_speed = seconds_ > 0.0 && speed_time_[gpu] > 0.0 ? speed_time_[gpu] / seconds_ : 1.0;
    return result;
}

}  // namespace headway::sim
