#include "backend/cluster/command.h"

#include "backend/cluster/packet.h"

namespace headway::backend {

std::vector<char> packed(const Command& command) {
    PacketWriter packet;
    packet.put(command.kind).put(command.seed).put(command.step).put(command.execution);
    packet.put(command.resume).put(command.wait).put(command.plan.layout);
    packet.put(command.plan.gpu_of_rank).put(command.plan.layers_of_cell).put(command.plan.micro_batches_of_replica);
    return packet.take();
}

Command unpacked_command(const std::vector<char>& bytes) {
    PacketReader packet(bytes);
    Command command;
    command.kind = packet.take<Command::Kind>();
    command.seed = packet.take<std::uint64_t>();
    command.step = packet.take<std::int64_t>();
    command.execution = packet.take<std::int64_t>();
    command.resume = packet.take<bool>();
    command.wait = packet.take<bool>();
    command.plan.layout = packet.take<scenarios::Layout>();
    command.plan.gpu_of_rank = packet.take<std::vector<int>>();
    command.plan.layers_of_cell = packet.take<std::vector<int>>();
    command.plan.micro_batches_of_replica = packet.take<std::vector<int>>();
    return command;
}

std::vector<char> packed(const StepReport& report) {
    PacketWriter packet;
    packet.put(report.rank).put(report.asked_to_stop).put(report.operations).put(report.late);
    packet.put(report.step.memory_bytes).put(report.step.sensors);
    const StepResult& step = report.step.step;
    packet.put(step.loss).put(step.gradient_norm).put(step.begin).put(step.end).put(step.instructions);
    return packet.take();
}

StepReport unpacked_report(const std::vector<char>& bytes) {
    PacketReader packet(bytes);
    StepReport report;
    report.rank = packet.take<int>();
    report.asked_to_stop = packet.take<bool>();
    report.operations = packet.take<std::int64_t>();
    report.late = packet.take<std::int64_t>();
    report.step.memory_bytes = packet.take<std::int64_t>();
    report.step.sensors = packet.take<GpuReading>();
    StepResult& step = report.step.step;
    step.loss = packet.take<double>();
    step.gradient_norm = packet.take<double>();
    step.begin = packet.take<scenarios::Duration>();
    step.end = packet.take<scenarios::Duration>();
    step.instructions = packet.take<std::vector<TimedInstruction>>();
    return report;
}

}  // namespace headway::backend
