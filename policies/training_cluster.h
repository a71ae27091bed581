#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/language/adapt.h"
#include "scenarios/language/cluster.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"
#include "scenarios/language/units.h"

/// THE SEAM between deciding and doing. The simulator and the real backend implement it; a policy cannot tell which one
/// it has. It hands out raw measurements only; policies/observation turns them into an observation by one piece of
/// code.
namespace headway::policies {

using scenarios::Duration;

/// What never changes during an episode and every operator knows.
struct ClusterFacts {
    scenarios::Job job;
    scenarios::Cluster cluster;
    scenarios::Plan initial_plan;
    scenarios::Adapt adapt;      ///< what may change at run time
    Duration healthy_iteration;  ///< of the initial plan with every GPU and link healthy: the acceptance run's figure
};

/// What NVML, CUDA events and NCCL tell about one rank, averaged over the iterations of one `run`.
struct RankMeasurement {
    int gpu = 0;
    Duration compute;                ///< per iteration: kernels of this rank
    Duration exposed_communication;  ///< per iteration
    Duration idle;                   ///< per iteration
    double temperature_c = 0.0;
    double sm_clock_mhz = 0.0;
    double power_w = 0.0;
    std::uint32_t throttle_reasons = 0;  ///< NVML bits
    std::int64_t memory_used_bytes = 0;
};

/// Bus bandwidth seen by one communicator group.
struct GroupMeasurement {
    enum class Kind : std::uint8_t { kTensor, kPipeline, kData } kind = Kind::kData;
    int index = 0;  ///< worker (tensor), replica*stage hop (pipeline), stage (data)
    double bus_bytes_per_second = 0.0;
};

/// A part that was lost during a run, as the job notices it.
struct Loss {
    std::vector<int> gpus;  ///< no longer usable
    Duration noticed_at;
};

struct Measurements {
    std::vector<Duration> iterations;    ///< completed ones, in order
    std::vector<RankMeasurement> ranks;  ///< [world size of the plan]; empty: nothing known of this plan yet
    std::vector<GroupMeasurement> groups;
    std::optional<Loss> loss;  ///< set when a loss ended the run early; the lost iteration is not in `iterations`
    std::vector<int> unavailable_gpus;  ///< lost and neither repaired nor replaced yet, ascending; idle ones too
    bool ended = false;                 ///< the scenario's end was reached
};

/// How a job that lost a part goes on.
struct Recovery {
    enum class Kind : std::uint8_t {
        kWaitForReplacement,  ///< the same plan, when a spare or the repaired part has arrived
        kRestart,             ///< at once under `plan`, which needs no unavailable GPU, from the last checkpoint
    } kind = Kind::kWaitForReplacement;
    scenarios::Plan plan;  ///< kRestart only
};

struct RecoveryOutcome {
    Duration pause;           ///< from noticing the loss until training goes on
    int iterations_lost = 0;  ///< rolled back to the last checkpoint, to be trained again
    scenarios::Plan plan;     ///< under which the job goes on
};

/// Errors: std::invalid_argument for a plan the job or cluster cannot run, the implementation's own error for a failed
/// device.
class TrainingCluster {
  public:
    virtual ~TrainingCluster() = default;
    virtual const ClusterFacts& facts() const = 0;
    /// Everything as at the beginning: time 0, the initial plan, nothing lost. Equal seeds give equal episodes.
    virtual void start_episode(std::uint64_t seed) = 0;
    /// Trains up to `iterations` iterations; fewer when a part is lost or the scenario ends. 0 trains nothing and takes
    /// no time; fewer throw std::invalid_argument. Moves to `plan` first where the job has another one.
    virtual Measurements run(const scenarios::Plan& plan, int iterations) = 0;
    /// Moves the job to another plan and returns how long training stood still; nothing for the plan it already has.
    /// Live where `facts().adapt` allows it and memory holds both plans, else by save and restart.
    virtual Duration move_to(const scenarios::Plan& plan) = 0;
    /// After a loss: waits or restarts under another plan, goes back to the last checkpoint. A loss meanwhile is part
    /// of the same recovery: the outcome's plan is the one under which the job goes on, and with kRestart another loss
    /// may end `run` at once.
    virtual RecoveryOutcome recover(const Recovery& choice) = 0;
    /// Time since the start of the episode.
    virtual Duration now() const = 0;
};

}  // namespace headway::policies
