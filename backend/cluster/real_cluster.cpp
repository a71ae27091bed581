#include "backend/cluster/real_cluster.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <thread>
#include <utility>

#include "backend/backend_error.h"
#include "backend/training/plan_place.h"
#include "scenarios/costs/memory.h"
#include "scenarios/language/plan_check.h"
#include "scenarios/language/program.h"

namespace headway::backend {

using policies::Measurements;

namespace {

constexpr int kWarmUpIterations = 1;
constexpr int kHealthyIterations = 3;
/// How long the reason of a failure may take from the process that failed first to this one.
constexpr std::chrono::milliseconds kReasonTravels{1000};

double declared_pace(const scenarios::Scenario& scenario, const DeploymentOptions& options) {
    return options.processors == "host" && scenario.deploy ? scenario.deploy->pace.value_or(0.0) : 0.0;
}

std::string in_seconds(scenarios::Duration time) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f s", time.s());
    return text;
}

}  // namespace

RealCluster::RealCluster(const scenarios::Scenario& scenario, const scenarios::Plan& plan,
                         const DeploymentOptions& options, Control& control, Member& member, scenarios::RunSink* sink,
                         bool operations)
    : scenario_(scenario),
      options_(options),
      control_(control),
      member_(member),
      facts_{scenario.job, scenario.cluster, plan, scenario.strategy.adapt, Duration()},
      reporter_(scenario, sink, declared_pace(scenario, options), operations),
      plan_(plan) {
    watching_ = control_.when_failed([this](const std::string& reason) {
        const std::lock_guard lock(reason_mutex_);
        reason_ = reason;
    });
    seed_ = scenario.seed;
    measure_healthy_iteration();
    keeper_ = std::thread([this] { keep_in_touch(); });
}

RealCluster::~RealCluster() {
    stop_keeping_in_touch();
    if (!over_) control_.abort("the run ended early");
}

/// Says something at least three times in the time after which silence counts as a loss.
void RealCluster::keep_in_touch() {
    const Duration timeout = scenario_.deploy.value_or(scenarios::Deployment()).timeout;
    const auto period = std::chrono::nanoseconds(std::max<std::int64_t>(1'000'000, timeout.ns() / 3));
    std::unique_lock quiet(quiet_mutex_);
    while (!quiet_changed_.wait_for(quiet, period, [&] { return quiet_ends_; })) {
        const std::unique_lock talking(talking_, std::try_to_lock);
        if (!talking || over_) continue;
        Command wait;
        wait.kind = Command::Kind::kWait;
        std::vector<char> bytes = packed(wait);
        try {
            control_.broadcast(bytes, 0);
        } catch (const BackendError&) {
            return;  // the next command fails, and says why
        }
    }
}

void RealCluster::stop_keeping_in_touch() {
    {
        const std::lock_guard quiet(quiet_mutex_);
        quiet_ends_ = true;
    }
    quiet_changed_.notify_all();
    if (keeper_.joinable()) keeper_.join();
}

void RealCluster::fail(const std::exception& error) {
    over_ = true;
    control_.abort(error.what());
    for (auto waited = std::chrono::milliseconds(0); waited < kReasonTravels; waited += std::chrono::milliseconds(20)) {
        {
            const std::lock_guard lock(reason_mutex_);
            if (!reason_.empty()) throw BackendError("the run cannot go on", reason_);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    throw BackendError("the run cannot go on", error.what());
}

std::optional<StepReport> RealCluster::command(const Command& command) {
    if (over_) throw std::logic_error("the run is over");
    std::vector<char> bytes = packed(command);
    control_.broadcast(bytes, 0);
    return member_.execute(command);
}

std::vector<StepReport> RealCluster::step_everywhere() {
    Command step;
    step.kind = Command::Kind::kStep;
    step.seed = seed_;
    step.step = step_;
    step.execution = execution_;
    const std::lock_guard talking(talking_);
    try {
        const std::optional<StepReport> own = command(step);
        std::vector<StepReport> reports;
        for (const std::vector<char>& bytes : control_.gather(packed(*own), 0))
            reports.push_back(unpacked_report(bytes));
        return reports;
    } catch (const BackendError& error) {
        fail(error);
    }
}

/// Trains one iteration. `told`: it is one of the episode.
RealCluster::Duration RealCluster::train_one(IterationMeasurement& measurement, bool told) {
    const auto began = std::chrono::steady_clock::now();
    const Duration start = told ? member_.clock().now() : Duration();
    const std::vector<StepReport> reports = step_everywhere();
    const Duration duration = Duration::nanoseconds(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - began).count());
    std::vector<RankStep> ranks(plan_.gpu_of_rank.size());
    for (const StepReport& report : reports) {
        if (report.rank >= 0) ranks.at(static_cast<std::size_t>(report.rank)) = report.step;
        const GpuReading& sensors = report.step.sensors;
        sensors_seen_ = sensors_seen_ || sensors.temperature_c || sensors.sm_clock_mhz || sensors.power_w;
        stopped_ = stopped_ || (told && report.asked_to_stop);
        if (!told) continue;
        paced_ += report.operations;
        late_ += report.late;
    }
    const double loss = ranks.front().step.loss;
    if (!std::isfinite(loss)) {
        over_ = true;
        const std::string what = "the loss of iteration " + std::to_string(step_) +
                                 " is not a number: a smaller job.training.learning_rate may help";
        control_.abort(what);
        throw std::runtime_error(what);
    }
    const std::vector<RankShares> shares = measurement.add(ranks, duration);
    if (told) {
        reporter_.iteration(step_, start, duration, ranks, shares);
        ++step_;
        ++execution_;
        now_ = start + duration;
    } else {
        reporter_.learn(ranks, shares, duration);
    }
    return duration;
}

void RealCluster::measure_healthy_iteration() {
    Command begin;
    begin.kind = Command::Kind::kInitialise;
    begin.seed = seed_;
    reporter_.take_up(plan_);
    std::vector<Duration> durations;
    try {
        command(begin);  // nobody else talks yet
    } catch (const BackendError& error) {
        fail(error);
    }
    for (int i = 0; i < kWarmUpIterations + kHealthyIterations; ++i) {
        IterationMeasurement measurement(facts_.job, facts_.cluster, plan_);
        const Duration duration = train_one(measurement, false);
        if (i >= kWarmUpIterations) durations.push_back(duration);
        ++step_;
    }
    std::sort(durations.begin(), durations.end());
    facts_.healthy_iteration = durations[durations.size() / 2];
    step_ = 0;
}

void RealCluster::start_episode(std::uint64_t seed) {
    const std::lock_guard talking(talking_);
    seed_ = seed;
    try {
        if (plan_ != facts_.initial_plan) {
            Command back;
            back.kind = Command::Kind::kMove;
            back.plan = facts_.initial_plan;
            command(back);
            control_.gather({}, 0);
            plan_ = facts_.initial_plan;
            reporter_.take_up(plan_);
        }
        Command begin;
        begin.kind = Command::Kind::kInitialise;
        begin.seed = seed;
        begin.resume = options_.resume;
        command(begin);
        step_ = saved_step_ = member_.first_step();
        begin.kind = Command::Kind::kBeginTime;
        command(begin);
    } catch (const BackendError& error) {
        fail(error);
    }
    execution_ = 0;
    paced_ = late_ = 0;
    now_ = Duration();
    last_save_ = Duration();
    stopped_ = false;
    reporter_.start_episode();
    say_what_is_missing();
}

/// What the record of this run cannot hold, or its scenario's causes cannot do.
void RealCluster::say_what_is_missing() {
    using Severity = scenarios::LogEvent::Severity;
    for (const std::string& sentence : member_.disturbances().not_physical(declared_pace(scenario_, options_) > 0.0))
        reporter_.log(Severity::kWarning, now_, "disturbance " + sentence);
    if (step_ > 0 && ended())
        reporter_.log(Severity::kWarning, now_,
                      "the newest checkpoint is of iteration " + std::to_string(step_) + ": nothing is left to train");
    else if (step_ > 0)
        reporter_.log(Severity::kInfo, now_, "goes on from the checkpoint of iteration " + std::to_string(step_));
    if (!sensors_seen_)
        reporter_.log(Severity::kInfo, now_,
                      "no sensors: temperature, clock and power are told as the nominal ones of the declared GPUs");
}

bool RealCluster::ended() const {
    return stopped_ || (scenario_.run.time ? now_ >= *scenario_.run.time : step_ >= scenario_.run.iterations);
}

Measurements RealCluster::run(const scenarios::Plan& plan, int iterations) {
    if (iterations < 0) throw std::invalid_argument("fewer than no iterations");
    move_to(plan);
    Measurements measured;
    IterationMeasurement measurement(facts_.job, facts_.cluster, plan_);
    for (int i = 0; i < iterations && !ended(); ++i) {
        measured.iterations.push_back(train_one(measurement, true));
        save_if_due();
    }
    measured.ranks = measurement.ranks();
    measured.groups = measurement.groups();
    measured.ended = ended();
    return measured;
}

RealCluster::Duration RealCluster::move_to(const scenarios::Plan& plan) {
    if (plan == plan_) return Duration();
    scenarios::check_plan(facts_.job, facts_.cluster, plan);
    if (!scenarios::memory_shortages(facts_.job, facts_.cluster, plan).empty())
        throw std::invalid_argument("the plan does not fit in memory");
    check_trainable(facts_.job, plan);
    for (const int micro_batches : plan.micro_batches_of_replica)  // throws where the schedule cannot be built
        scenarios::make_program(plan.layout, facts_.job.model.tied_embedding, 0, micro_batches);
    const bool shares_alone = plan.layout == plan_.layout && plan.gpu_of_rank == plan_.gpu_of_rank &&
                              plan.layers_of_cell == plan_.layers_of_cell;
    const Duration before = now_, began = member_.clock().now();
    Command move;
    move.kind = Command::Kind::kMove;
    move.plan = plan;
    const std::lock_guard talking(talking_);
    try {
        command(move);
        control_.gather({}, 0);
    } catch (const BackendError& error) {
        fail(error);
    }
    plan_ = plan;
    reporter_.take_up(plan_);
    now_ = member_.clock().now();
    scenarios::PauseEvent event;
    event.reason = scenarios::PauseEvent::Reason::kSwitch;
    event.start_ns = began.ns();
    event.duration_ns = (now_ - began).ns();
    event.what = "switch to " + scenarios::describe(plan.layout) + " on " + std::to_string(plan.gpu_of_rank.size()) +
                 " GPUs" + (shares_alone ? ": micro-batches shared anew, " : ": state moved between processes, ") +
                 in_seconds(now_ - began) + " pause";
    event.plan = plan;
    reporter_.pause(event);
    return now_ - before;
}

policies::RecoveryOutcome RealCluster::recover(const policies::Recovery&) {
    throw std::invalid_argument(
        "nothing is lost: a process that is lost ends the run, and a new launch with --resume goes on");
}

void RealCluster::save(bool wait) {
    if (!member_.keeps_checkpoints()) return;
    const Duration start = member_.clock().now();
    Command save;
    save.kind = Command::Kind::kSave;
    save.seed = seed_;
    save.step = step_;
    save.wait = wait;
    const std::lock_guard talking(talking_);
    try {
        command(save);
        control_.gather({}, 0);
    } catch (const BackendError& error) {
        fail(error);
    }
    now_ = member_.clock().now();
    last_save_ = start;
    saved_step_ = step_;
    scenarios::PauseEvent event;
    event.reason = scenarios::PauseEvent::Reason::kCheckpoint;
    event.start_ns = start.ns();
    event.duration_ns = (now_ - start).ns();
    event.what = "checkpoint of iteration " + std::to_string(step_);
    reporter_.pause(event);
}

void RealCluster::save_if_due() {
    const scenarios::Checkpointing& policy = scenario_.job.checkpoint;
    if (policy.interval <= Duration() || now_ - last_save_ < policy.interval) return;
    save(!policy.asynchronous);
}

/// A declared pace that is not kept makes the run another one than the scenario says.
void RealCluster::say_how_the_pace_was_kept() {
    constexpr double kTolerated = 0.1;
    if (declared_pace(scenario_, options_) <= 0.0 || paced_ == 0) return;
    const double share = static_cast<double>(late_) / static_cast<double>(paced_);
    if (share <= kTolerated) return;
    reporter_.log(scenarios::LogEvent::Severity::kWarning, now_,
                  std::to_string(static_cast<int>(share * 100.0 + 0.5)) +
                      " % of the operations took longer than their declared pace: this machine is too busy or too slow "
                      "for it (deploy.pace, or slower GPUs in the cluster)");
}

void RealCluster::finish() {
    if (over_) return;
    say_how_the_pace_was_kept();
    if (step_ > saved_step_) save(true);
    Command end;
    end.kind = Command::Kind::kEnd;
    stop_keeping_in_touch();
    try {
        command(end);
    } catch (const BackendError& error) {
        fail(error);
    }
    over_ = true;
}

}  // namespace headway::backend
