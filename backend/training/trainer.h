#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/communicator/communicator.h"
#include "backend/data/token_source.h"
#include "backend/device/device.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"
#include "scenarios/language/program.h"
#include "scenarios/transfer/ownership.h"

/// One process's part of a training job under one plan: it interprets the rank's program
/// (scenarios/language/program.h), the same that the simulator executes.
namespace headway::backend {

/// One executed instruction, in time since the device was made.
struct TimedInstruction {
    scenarios::Instruction instruction;
    scenarios::Duration begin;
    scenarios::Duration end;
    scenarios::Duration exposed;  ///< of it: waiting for communication (tensor collectives, messages, gradients)
    std::int64_t bytes = 0;       ///< sent or received by this rank
};

struct StepResult {
    double loss = 0.0;           ///< mean over the tokens of the global batch; on every rank of the plan
    double gradient_norm = 0.0;  ///< of the whole model, before clipping
    scenarios::Duration begin;
    scenarios::Duration end;
    std::vector<TimedInstruction> instructions;  ///< in program order
};

/// Part of the optimizer's state that this rank owns, in block order (A; on the device).
struct StateSlice {
    scenarios::Block block;
    scenarios::Interval elements;
    Tensor master;  ///< weights in accumulation type
    Tensor first_moment;
    Tensor second_moment;
};

/// Called after each compute instruction and within the optimizer step: where ranks run at a declared pace, it lets the
/// time pass that is missing.
class Pace {
  public:
    virtual ~Pace() = default;
    /// `spent`: on the instruction so far, without its exposed communication.
    virtual void finish(const scenarios::Instruction& instruction, scenarios::Duration spent) = 0;
};

class Trainer {
  public:
    /// Every process of the job makes one at the same time, also those without a rank in `plan` (process p is GPU p).
    /// References are kept. Throws std::invalid_argument for what cannot run for real (context parallelism),
    /// BackendError when memory does not suffice.
    Trainer(const scenarios::Job& job, const scenarios::Plan& plan, int process, Device& device,
            CommunicatorMaker& communicators, const TokenSource& tokens);
    ~Trainer();

    /// Rank in the plan, -1 for none.
    int rank() const;
    /// State as at the beginning of training, drawn from `seed`.
    void initialise(std::uint64_t seed);
    /// After the slices of state() were written from outside (a checkpoint): weights follow from the master weights.
    void state_changed();
    /// Goes on under a plan that differs in `micro_batches_of_replica` alone: the next iteration runs it. Throws
    /// std::invalid_argument for another one.
    void share(const scenarios::Plan& plan);
    /// What this rank owns; step counts of Adam are the caller's `step`.
    std::span<StateSlice> state();
    /// One iteration: optimizer step number `step`, counted from 0, on the samples of that step. Every process calls
    /// it; one without a rank returns at once. Throws BackendError, on every rank of the plan; where the gradient is
    /// not finite, with the state as before the step.
    StepResult step(std::int64_t step, std::uint64_t seed, Pace* pace);
    /// Bytes that this rank keeps in device memory.
    scenarios::Bytes memory() const;

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace headway::backend
