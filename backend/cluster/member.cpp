#include "backend/cluster/member.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "backend/backend_error.h"
#include "backend/checkpoint/hugging_face.h"
#include "backend/cluster/packet.h"
#include "backend/cluster/state_exchange.h"
#include "backend/cuda/cuda_module.h"
#include "scenarios/language/config_error.h"

namespace headway::backend {

using scenarios::Duration;

namespace {

/// Occupations are renewed at iterations after this time and end by themselves after twice as long.
constexpr Duration kOccupied = Duration::nanoseconds(300'000'000'000);

std::chrono::milliseconds timeout_of(const scenarios::Scenario& scenario) {
    const scenarios::Deployment deploy = scenario.deploy.value_or(scenarios::Deployment());
    return std::chrono::milliseconds(std::max<std::int64_t>(1, deploy.timeout.ns() / 1'000'000));
}

}  // namespace

Member::Member(const scenarios::Scenario& scenario, const scenarios::Plan& plan, const DeploymentOptions& options,
               Control& control)
    : scenario_(scenario), options_(options), control_(control), disturbances_(scenario) {
    const scenarios::Model& model = scenario_.job.model;
    agree([&] { tokens_ = open_tokens(options_.data, model.sequence_length, model.vocab); });
    processors_ = make_processors(options_.processors, control_, options_.device, timeout_of(scenario_));
    device_name_ = processors_.device->name();
    if (options_.processors == "cuda") {
        occupier_ = cuda_module().make_occupier(*processors_.device);
        sampler_ = std::make_unique<SensorSampler>(open_gpu_sensors(), cuda_module().pci_bus_id(options_.device));
    }
    communicators_ = std::make_unique<SlowedCommunicators>(*processors_.communicators, disturbances_, clock_);
    if (options_.checkpoints) {
        const int keep = scenario_.deploy ? scenario_.deploy->keep : scenarios::Deployment().keep;
        store_ = std::make_unique<CheckpointStore>(*options_.checkpoints, control_, keep);
    }
    prepare(plan);
}

Member::~Member() {
    {
        const std::lock_guard lock(mutex_);
        ends_ = true;
    }
    ended_.notify_all();
    if (executioner_.joinable()) executioner_.join();
}

void Member::agree(const std::function<void()>& action) {
    std::string problem;
    try {
        action();
    } catch (const scenarios::ConfigError& error) {
        problem = error.what();
    }
    const std::vector<std::vector<char>> all = control_.all_gather(PacketWriter().put(problem).take());
    for (std::size_t process = 0; process < all.size(); ++process) {
        const auto said = PacketReader(all[process]).take<std::string>();
        if (said.empty()) continue;
        throw scenarios::ConfigError(process == 0 ? said : "process " + std::to_string(process) + ": " + said);
    }
}

void Member::prepare(const scenarios::Plan& plan) {
    communicators_->place(plan);
    trainer_ =
        std::make_unique<Trainer>(scenario_.job, plan, process(), *processors_.device, *communicators_, *tokens_);
    take_up(plan);
}

void Member::take_up(const scenarios::Plan& plan) {
    plan_ = plan;
    pace_.reset();
    const std::optional<double> factor =
        options_.processors == "host" && scenario_.deploy ? scenario_.deploy->pace : std::nullopt;
    if (trainer_->rank() >= 0 && options_.processors == "host")
        pace_ = std::make_unique<SlowedPace>(scenario_.job, scenario_.cluster, plan_, trainer_->rank(), factor,
                                             disturbances_, clock_);
}

std::optional<StepReport> Member::execute(const Command& command) {
    switch (command.kind) {
        case Command::Kind::kInitialise:
            initialise(command.seed, command.resume);
            break;
        case Command::Kind::kBeginTime:
            begin_time();
            break;
        case Command::Kind::kStep:
            return step(command);
        case Command::Kind::kMove:
            move(command.plan);
            break;
        case Command::Kind::kSave:
            save(command);
            break;
        case Command::Kind::kWait:
            break;
        case Command::Kind::kEnd:
            if (store_) store_->finish();
            break;
    }
    return std::nullopt;
}

void Member::serve() {
    try {
        while (true) {
            std::vector<char> bytes;
            control_.broadcast(bytes, 0);
            const Command command = unpacked_command(bytes);
            const std::optional<StepReport> report = execute(command);
            if (report)
                control_.gather(packed(*report), 0);
            else if (command.kind == Command::Kind::kMove || command.kind == Command::Kind::kSave)
                control_.gather({}, 0);  // ready
            if (command.kind == Command::Kind::kEnd) return;
        }
    } catch (const scenarios::ConfigError&) {
        // Every process has it. Process 0 tells it and ends the job; to abort here could reach it before its own.
        try {
            std::vector<char> nothing;
            control_.broadcast(nothing, 0);
        } catch (const BackendError&) {
        }
        throw;
    } catch (const std::exception& error) {
        control_.abort(error.what());
        throw;
    }
}

void Member::initialise(std::uint64_t seed, bool resume) {
    clock_.stop();
    first_step_ = 0;
    trainer_->initialise(seed);
    if (options_.weights) {
        load_hugging_face(*options_.weights, scenario_.job, control_, *processors_.device, trainer_->state());
        trainer_->state_changed();
    }
    if (!resume || !store_) return;
    const std::optional<CheckpointInfo> newest = store_->newest();
    if (!newest) throw scenarios::ConfigError("--resume: no checkpoint in " + options_.checkpoints->string());
    if (newest->seed != seed)
        throw scenarios::ConfigError("--resume: the checkpoint in " + options_.checkpoints->string() +
                                     " was trained with seed " + std::to_string(newest->seed) + ", not " +
                                     std::to_string(seed));
    store_->load(scenario_.job, *newest, *processors_.device, trainer_->state());
    trainer_->state_changed();
    first_step_ = newest->step;
}

/// All processes return from the exchange within the time that its last message takes.
void Member::begin_time() {
    control_.all_gather({});
    clock_.start();
    for (const ProcessLoss& loss : disturbances_.losses()) {
        if (loss.gpu != process() || process() == 0 || executioner_.joinable()) continue;
        executioner_ = std::thread([this, at = clock_.at(loss.at)] {
            std::unique_lock lock(mutex_);
            if (!ended_.wait_until(lock, at, [&] { return ends_; })) ::kill(::getpid(), SIGKILL);
        });
    }
}

/// A device that has no pace of its own shares its processors with somebody else.
void Member::slow_device() {
    if (!occupier_) return;
    const Duration now = clock_.now();
    const scenarios::GpuPace pace = disturbances_.gpu(process(), now);
    const double share = 1.0 - std::min(pace.compute, pace.memory);
    if (share == occupied_ && (share == 0.0 || now < occupied_until_)) return;
    if (share > 0.0)
        occupier_->occupy(share, kOccupied * 2);
    else
        occupier_->release();
    occupied_ = share;
    occupied_until_ = now + kOccupied;
}

StepReport Member::step(const Command& command) {
    slow_device();
    if (pace_) pace_->begin_iteration(command.seed, command.execution);
    StepReport report;
    report.step.step = trainer_->step(command.step, command.seed, pace_.get());
    report.rank = trainer_->rank();
    report.step.memory_bytes = trainer_->memory().count();
    report.step.sensors = read_sensors();
    report.asked_to_stop = options_.asked_to_stop && options_.asked_to_stop();
    if (pace_) {
        const SlowedPace::Overrun overrun = pace_->take_overrun();
        report.operations = overrun.operations;
        report.late = overrun.late;
    }
    return report;
}

GpuReading Member::read_sensors() const {
    if (sampler_) return sampler_->latest();
    const bool own_speed = options_.processors == "host" && !(scenario_.deploy && scenario_.deploy->pace);
    return own_speed ? read_host_sensors() : GpuReading();
}

void Member::move(const scenarios::Plan& plan) {
    scenarios::Plan shared_anew = plan_;
    shared_anew.micro_batches_of_replica = plan.micro_batches_of_replica;
    if (shared_anew == plan) {
        trainer_->share(plan);
        take_up(plan);
        return;
    }
    const std::unique_ptr<Trainer> before = std::move(trainer_);
    prepare(plan);
    exchange_state(control_, *processors_.communicators, *processors_.device, before->state(), trainer_->state());
    trainer_->state_changed();
}

void Member::save(const Command& command) {
    if (!store_) return;
    store_->save(scenario_.job, plan_, {command.step, command.seed, scenario_.name}, *processors_.device,
                 trainer_->state());
    if (command.wait) store_->finish();
}

}  // namespace headway::backend
