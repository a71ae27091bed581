#pragma once

#include "backend/communicator/communicator.h"
#include "backend/device/device.h"
#include "backend/training/gradient_reduction.h"
#include "backend/training/held_block.h"
#include "backend/training/instruction_clock.h"
#include "scenarios/language/job.h"
#include "scenarios/language/plan.h"

namespace headway::backend {

/// AdamW on what a rank owns, with the norm of the whole model's gradient.
class Optimizer {
  public:
    /// What all ranks of the plan agree on.
    struct Totals {
        double loss = 0.0;           ///< sum over ranks
        double gradient_norm = 0.0;  ///< of the model, every parameter counted once
    };

    Optimizer(Device& device, const scenarios::Job& job, const scenarios::Layout& layout, HeldBlocks& blocks,
              const GradientReduction& gradients, Communicator& world);

    /// One all-reduce over all ranks; `loss` is this rank's share. Gradients are reduced.
    Totals totals(double loss, InstructionClock& clock);
    /// Optimizer step number `step`, counted from 0, of the owned master weights and moments.
    void update(std::int64_t step, double gradient_norm);

  private:
    Device& device_;
    const scenarios::Model& model_;
    const scenarios::Training training_;
    const int tensor_degree_;
    HeldBlocks& held_;
    const GradientReduction& gradients_;
    Communicator& world_;
    Buffer totals_;  // squares, loss
};

}  // namespace headway::backend
