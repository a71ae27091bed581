#include "backend/training/pipeline_messages.h"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

namespace headway::backend {

using scenarios::Instruction;
using scenarios::Op;

PipelineMessages::PipelineMessages(Device& device, const TrainingGroups& groups, const scenarios::Layout& layout,
                                   int stage, std::int64_t rows, std::int64_t columns)
    : device_(device),
      groups_(groups),
      blocking_(scenarios::message_mode(layout) == scenarios::MessageMode::kBlocking),
      stages_(layout.pipeline),
      stage_(stage),
      rows_(rows),
      columns_(columns) {}

PipelineMessages::~PipelineMessages() {
    // After an error, with the groups aborted: nobody may write to memory that is given back.
    const auto drain = [](Slot& slot) {
        try {
            if (slot.work) slot.work->wait();
        } catch (const std::exception&) {
            // The error that led here is already on its way.
        }
    };
    for (auto& [key, slot] : incoming_) drain(slot);
    for (Slot& slot : sending_) drain(slot);
}

PipelineMessages::Slot PipelineMessages::allocate() {
    Slot slot;
    slot.buffer = device_.allocate(device_.working_type(), rows_ * columns_);
    slot.tensor = slot.buffer.tensor(device_.working_type(), rows_, columns_);
    return slot;
}

Tensor PipelineMessages::outgoing(Flow flow, int chunk, int micro_batch) {
    return (outgoing_[{flow, chunk, micro_batch}] = allocate()).tensor;
}

Tensor PipelineMessages::incoming(Flow flow, int chunk, int micro_batch, InstructionClock& clock) {
    const auto found = incoming_.find({flow, chunk, micro_batch});
    if (found == incoming_.end()) throw std::logic_error("a program computes what it has not received");
    if (found->second.work) clock.wait(*found->second.work);
    found->second.work.reset();
    return found->second.tensor;
}

void PipelineMessages::release(Flow flow, int chunk, int micro_batch) {
    incoming_.erase({flow, chunk, micro_batch});
}

void PipelineMessages::issue(std::span<const Instruction> batch, InstructionClock& clock) {
    struct Exchange {
        Communicator* communicator = nullptr;
        std::vector<Message> messages;
        std::vector<Slot*> slots;
    };
    std::vector<Exchange> exchanges;
    for (std::size_t i = 0; i < batch.size(); ++i) {
        const Instruction& instruction = batch[i];
        const bool sends = instruction.op == Op::kSendActivation || instruction.op == Op::kSendGradient;
        const bool next = instruction.op == Op::kSendActivation || instruction.op == Op::kReceiveGradient;
        const Key key{sends == next ? Flow::kActivation : Flow::kGradient, instruction.chunk, instruction.micro_batch};
        Slot* slot = nullptr;
        if (sends) {
            const auto made = outgoing_.find(key);
            if (made == outgoing_.end()) throw std::logic_error("a program sends what it has not computed");
            slot = &sending_.emplace_back(std::move(made->second));
            outgoing_.erase(made);
        } else {
            slot = &(incoming_[key] = allocate());
        }
        const bool around = next ? stage_ == stages_ - 1 : stage_ == 0;
        const int peer = (stage_ + (next ? 1 : stages_ - 1)) % stages_;
        Communicator* const communicator = &groups_.messages(std::get<0>(key), around);
        auto exchange = std::find_if(exchanges.begin(), exchanges.end(),
                                     [&](const Exchange& e) { return e.communicator == communicator; });
        if (exchange == exchanges.end()) exchange = exchanges.insert(exchange, {communicator, {}, {}});
        exchange->messages.push_back({sends, peer, slot->tensor});
        exchange->slots.push_back(slot);
        clock.add_bytes(slot->tensor.bytes(), i);
    }
    std::vector<std::shared_ptr<Work>> works;
    for (const Exchange& exchange : exchanges) {
        works.push_back(exchange.communicator->exchange(exchange.messages));
        for (Slot* const slot : exchange.slots) slot->work = works.back();
    }
    if (!blocking_) {
        // To ask may cost a transport something, so a few may stay.
        const auto few = static_cast<std::size_t>(2 * stages_);
        while (sending_.size() > few && sending_.front().work->done()) sending_.pop_front();
        return;
    }
    for (const std::shared_ptr<Work>& work : works) clock.wait(*work);
    sending_.clear();
    for (const Exchange& exchange : exchanges)
        for (std::size_t i = 0; i < exchange.slots.size(); ++i)
            if (!exchange.messages[i].send) exchange.slots[i]->work.reset();
}

void PipelineMessages::finish(InstructionClock& clock) {
    while (!sending_.empty()) {
        clock.wait(*sending_.front().work);
        sending_.pop_front();
    }
}

}  // namespace headway::backend
