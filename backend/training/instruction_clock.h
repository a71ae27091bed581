#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "backend/communicator/communicator.h"
#include "backend/device/device.h"
#include "backend/training/trainer.h"

namespace headway::backend {

/// Times the instructions of one iteration on the device's own clock, and what of each was waiting for communication.
class InstructionClock {
  public:
    explicit InstructionClock(Device& device) : device_(device) {}

    /// One instruction, or a batch of messages, which share begin and end; what they wait for is the first one's.
    void begin(std::span<const scenarios::Instruction> batch);
    void end();
    /// Waits, and counts the time as exposed communication of the instruction that runs, if one does.
    void wait(Work& work);
    void add_exposed(scenarios::Duration time) { entries_.back().exposed += time; }
    /// Sent or received by instruction `index` of the batch.
    void add_bytes(std::int64_t bytes, std::size_t index = 0) {
        instructions_[entries_.back().first + index].bytes += bytes;
    }
    /// Lets the time pass that the instruction lacks. Waits for the device.
    void keep_pace(Pace& pace);

    /// In the order in which they began; waits for the device. Begin and end of all of it are those of the first and
    /// the last instruction.
    std::vector<TimedInstruction> take();

  private:
    struct Entry {
        std::size_t first = 0;  // of instructions_
        std::size_t count = 0;
        Mark begin;
        Mark end;
        std::vector<std::pair<Mark, Mark>> waits;
        scenarios::Duration exposed;  // besides the waits
    };
    scenarios::Duration exposed_of(const Entry& entry);

    Device& device_;
    std::vector<Entry> entries_;
    std::vector<TimedInstruction> instructions_;
    bool running_ = false;
};

}  // namespace headway::backend
