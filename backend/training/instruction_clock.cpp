#include "backend/training/instruction_clock.h"

namespace headway::backend {

using scenarios::Duration;

void InstructionClock::begin(std::span<const scenarios::Instruction> batch) {
    Entry entry;
    entry.first = instructions_.size();
    entry.count = batch.size();
    for (const scenarios::Instruction& instruction : batch) {
        instructions_.emplace_back();
        instructions_.back().instruction = instruction;
    }
    entry.begin = device_.mark();
    entries_.push_back(std::move(entry));
    running_ = true;
}

void InstructionClock::end() {
    entries_.back().end = device_.mark();
    running_ = false;
}

void InstructionClock::wait(Work& work) {
    if (!running_) {
        work.wait();
        return;
    }
    const Mark before = device_.mark();
    work.wait();
    entries_.back().waits.emplace_back(before, device_.mark());
}

Duration InstructionClock::exposed_of(const Entry& entry) {
    Duration exposed = entry.exposed;
    for (const auto& [before, after] : entry.waits) exposed += device_.time_of(after) - device_.time_of(before);
    return exposed;
}

void InstructionClock::keep_pace(Pace& pace) {
    const Entry& entry = entries_.back();
    const Duration passed = device_.time_of(device_.mark()) - device_.time_of(entry.begin);
    pace.finish(instructions_[entry.first].instruction, passed - exposed_of(entry));
}

std::vector<TimedInstruction> InstructionClock::take() {
    for (const Entry& entry : entries_) {
        for (std::size_t i = entry.first; i < entry.first + entry.count; ++i) {
            instructions_[i].begin = device_.time_of(entry.begin);
            instructions_[i].end = device_.time_of(entry.end);
        }
        instructions_[entry.first].exposed = exposed_of(entry);
    }
    entries_.clear();
    device_.forget_marks();
    return std::move(instructions_);
}

}  // namespace headway::backend
