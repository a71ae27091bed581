#include "backend/cluster/command.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "backend/cluster/packet.h"
#include "tests/backend/cluster/small_deployment.h"

namespace headway::backend {
namespace {

TEST(Command, ComesOutOfItsPacketAsItWentIn) {
    Command command;
    command.kind = Command::Kind::kMove;
    command.seed = 7;
    command.step = 12;
    command.execution = 13;
    command.resume = true;
    command.plan = initial_plan_of(small_deployment());
    const Command read = unpacked_command(packed(command));
    EXPECT_EQ(read.kind, command.kind);
    EXPECT_EQ(read.seed, 7u);
    EXPECT_EQ(read.step, 12);
    EXPECT_EQ(read.execution, 13);
    EXPECT_TRUE(read.resume);
    EXPECT_FALSE(read.wait);
    EXPECT_EQ(read.plan, command.plan);
}

TEST(StepReport, ComesOutOfItsPacketAsItWentIn) {
    StepReport report;
    report.rank = 3;
    report.asked_to_stop = true;
    report.late = 5;
    report.step.memory_bytes = 99;
    report.step.sensors.power_w = 250.5;
    report.step.step.loss = 2.25;
    TimedInstruction timed;
    timed.instruction = {scenarios::Op::kSendGradient, 1, true, 4};
    timed.end = scenarios::Duration::milliseconds(3);
    timed.bytes = 17;
    report.step.step.instructions = {timed, timed};
    const StepReport read = unpacked_report(packed(report));
    EXPECT_EQ(read.rank, 3);
    EXPECT_TRUE(read.asked_to_stop);
    EXPECT_EQ(read.late, 5);
    EXPECT_EQ(read.step.memory_bytes, 99);
    EXPECT_EQ(read.step.sensors.power_w, 250.5);
    EXPECT_FALSE(read.step.sensors.temperature_c);
    EXPECT_EQ(read.step.step.loss, 2.25);
    ASSERT_EQ(read.step.step.instructions.size(), 2u);
    EXPECT_EQ(read.step.step.instructions[1].instruction, timed.instruction);
    EXPECT_EQ(read.step.step.instructions[1].end, timed.end);
    EXPECT_EQ(read.step.step.instructions[1].bytes, 17);
}

TEST(Packet, ThatIsCutIsNoticed) {
    std::vector<char> bytes = PacketWriter().put(std::string("a text")).put(std::vector<int>{1, 2, 3}).take();
    bytes.pop_back();
    PacketReader packet(bytes);
    EXPECT_EQ(packet.take<std::string>(), "a text");
    EXPECT_THROW(packet.take<std::vector<int>>(), std::runtime_error);
}

}  // namespace
}  // namespace headway::backend
