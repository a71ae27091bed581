#pragma once

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <tuple>

#include "backend/device/device.h"
#include "backend/training/instruction_clock.h"
#include "backend/training/training_groups.h"
#include "scenarios/language/program.h"
#include "scenarios/timing/task_graph.h"

namespace headway::backend {

/// Activations and their gradients between the stages of a replica: their memory, and the messages that a program
/// issues. Where messages block (scenarios::MessageMode), a batch is one exchange that is waited for; else each is
/// posted, a received tensor is waited for when it is asked for, and sent ones are kept until they are through.
class PipelineMessages {
  public:
    /// `rows` x `columns` of the working type: what crosses between stages.
    PipelineMessages(Device& device, const TrainingGroups& groups, const scenarios::Layout& layout, int stage,
                     std::int64_t rows, std::int64_t columns);
    ~PipelineMessages();

    /// Memory for an output of `chunk` (or the gradient of its input), to be sent.
    Tensor outgoing(Flow flow, int chunk, int micro_batch);
    /// What was received for `chunk`; waits for it.
    Tensor incoming(Flow flow, int chunk, int micro_batch, InstructionClock& clock);
    /// What was received is needed no more.
    void release(Flow flow, int chunk, int micro_batch);

    /// Messages that stand in one batch.
    void issue(std::span<const scenarios::Instruction> batch, InstructionClock& clock);
    /// Waits for what is still being sent.
    void finish(InstructionClock& clock);

  private:
    struct Slot {
        Buffer buffer;
        Tensor tensor;
        std::shared_ptr<Work> work;
    };
    using Key = std::tuple<Flow, int, int>;  // flow, chunk, micro-batch

    Slot allocate();

    Device& device_;
    const TrainingGroups& groups_;
    const bool blocking_;
    const int stages_;
    const int stage_;
    const std::int64_t rows_, columns_;
    std::map<Key, Slot> outgoing_, incoming_;
    std::deque<Slot> sending_;
};

}  // namespace headway::backend
