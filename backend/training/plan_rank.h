#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backend/training/gradient_reduction.h"
#include "backend/training/held_block.h"
#include "backend/training/instruction_clock.h"
#include "backend/training/optimizer.h"
#include "backend/training/parameter_gathering.h"
#include "backend/training/pipeline_messages.h"
#include "backend/training/plan_place.h"
#include "backend/training/samples.h"
#include "backend/training/trainer.h"
#include "backend/training/training_groups.h"
#include "backend/transformer/chunk.h"
#include "scenarios/language/program.h"

namespace headway::backend {

/// One rank of a plan: its part of the model, and the interpreter of its program.
class PlanRank {
  public:
    /// Keeps references.
    PlanRank(const scenarios::Job& job, const scenarios::Plan& plan, const PlanPlace& place,
             const TrainingGroups& groups, Device& device, const TokenSource& tokens);

    std::span<StateSlice> state() { return held_.state(); }
    void initialise(std::uint64_t seed);
    void state_changed();
    void share(const scenarios::Plan& plan);
    StepResult step(std::int64_t step, std::uint64_t seed, Pace* pace);

  private:
    void execute(const scenarios::Instruction& instruction, std::int64_t step, StepResult& result);
    void forward(const scenarios::Instruction& instruction);
    void backward(const scenarios::Instruction& instruction);
    /// The micro-batch has been through the chunk, forward and backward.
    void complete(const scenarios::Instruction& instruction);
    void optimizer_step(std::int64_t step, StepResult& result);

    Chunk& chunk(int number) { return *chunks_[static_cast<std::size_t>(number)]; }
    int chunk_count() const { return static_cast<int>(chunks_.size()); }
    void count_tensor_communication(Chunk& chunk);

    const scenarios::Job& job_;
    const PlanPlace place_;
    const scenarios::Layout& layout_;
    Device& device_;
    scenarios::Program program_;
    int micro_batches_ = 0;   // of the replica
    const bool loss_counts_;  // of the ranks that know a loss, one
    std::vector<std::unique_ptr<Chunk>> chunks_;
    HeldBlocks held_;
    GradientReduction gradients_;
    ParameterGathering parameters_;
    Optimizer optimizer_;
    Samples samples_;
    PipelineMessages messages_;
    InstructionClock clock_;
    std::vector<int> backwards_left_;  // [chunks] in this step
};

}  // namespace headway::backend
