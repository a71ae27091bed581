#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "backend/checkpoint/checkpoint.h"
#include "backend/cluster/command.h"
#include "backend/data/token_source.h"
#include "backend/device/occupier.h"
#include "backend/processors.h"
#include "backend/slowdown/episode_clock.h"
#include "backend/slowdown/slowed_communicator.h"
#include "backend/slowdown/slowed_pace.h"
#include "backend/telemetry/sensor_sampler.h"
#include "scenarios/language/scenario.h"

namespace headway::backend {

/// How the processes of a deployment train, besides what the scenario says.
struct DeploymentOptions {
    std::string processors = "host";  ///< or "cuda"
    int device = 0;                   ///< number of this process's device on its machine
    std::filesystem::path data;
    std::optional<std::filesystem::path> checkpoints;
    std::optional<std::filesystem::path> weights;  ///< to begin with, instead of drawn ones: a Hugging Face folder
    bool resume = false;                           ///< begin with the newest checkpoint
    std::function<bool()> asked_to_stop;           ///< SIGTERM came to this process; may be empty
};

/// One process of a deployment: process p trains as GPU p of the scenario's cluster. It does what process 0 commands;
/// process 0 has one too.
class Member {
  public:
    /// All processes make theirs at once. Throws on every process when one cannot (no device, no data): on process 0
    /// what went wrong there or with whom, ConfigError or BackendError.
    Member(const scenarios::Scenario& scenario, const scenarios::Plan& plan, const DeploymentOptions& options,
           Control& control);
    ~Member();

    int process() const { return control_.rank(); }
    const std::string& device_name() const { return device_name_; }
    EpisodeClock& clock() { return clock_; }
    const PhysicalDisturbances& disturbances() const { return disturbances_; }

    /// Does what is commanded; kStep has an answer. Throws BackendError, ConfigError for a checkpoint that cannot be
    /// used.
    std::optional<StepReport> execute(const Command& command);
    /// Executes the commands of process 0 until the end. What ends it otherwise is thrown, after the others were told.
    void serve();
    /// Of what kInitialise loaded: next optimizer step, 0 where nothing was.
    std::int64_t first_step() const { return first_step_; }
    bool keeps_checkpoints() const { return store_ != nullptr; }

  private:
    void prepare(const scenarios::Plan& plan);
    void take_up(const scenarios::Plan& plan);
    void initialise(std::uint64_t seed, bool resume);
    void begin_time();
    StepReport step(const Command& command);
    void move(const scenarios::Plan& plan);
    void save(const Command& command);
    void slow_device();
    GpuReading read_sensors() const;
    /// Throws everywhere what any process says.
    void agree(const std::function<void()>& action);

    const scenarios::Scenario scenario_;
    const DeploymentOptions options_;
    Control& control_;
    EpisodeClock clock_;
    PhysicalDisturbances disturbances_;
    std::unique_ptr<TokenSource> tokens_;
    Processors processors_;
    std::string device_name_;
    std::unique_ptr<SlowedCommunicators> communicators_;
    std::unique_ptr<Occupier> occupier_;
    std::unique_ptr<SensorSampler> sampler_;
    std::unique_ptr<CheckpointStore> store_;
    scenarios::Plan plan_;
    std::unique_ptr<Trainer> trainer_;
    std::unique_ptr<SlowedPace> pace_;
    std::int64_t first_step_ = 0;
    double occupied_ = 0.0;  ///< share of the device
    scenarios::Duration occupied_until_;
    /// Kills this process when a disturbance says so.
    std::thread executioner_;
    std::mutex mutex_;
    std::condition_variable ended_;
    bool ends_ = false;
};

}  // namespace headway::backend
