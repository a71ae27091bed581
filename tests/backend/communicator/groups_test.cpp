#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "backend/communicator/host_communicators.h"
#include "scenarios/language/program.h"
#include "tests/backend/communicator/conformance.h"
#include "tests/backend/local_ranks.h"

namespace headway::backend {
namespace {

using GroupsClock = std::chrono::steady_clock;

Tensor row_of(std::vector<float>& values) {
    const auto count = static_cast<std::int64_t>(values.size());
    return {values.data(), DataType::kFloat32, 1, count, count};
}

/// Tensor, pipeline and data groups of 8 ranks, every pair of them, everybody, and each alone: 45.
std::vector<GroupSpec> many_groups() {
    std::vector<GroupSpec> groups = {{"all", everybody(8)}};
    for (int i = 0; i < 4; ++i) groups.push_back({"tensor " + std::to_string(i), {2 * i, 2 * i + 1}});
    for (int i = 0; i < 2; ++i) groups.push_back({"data " + std::to_string(i), {i, i + 2, i + 4, i + 6}});
    for (int i = 0; i < 8; ++i)
        for (int j = i + 1; j < 8; ++j) groups.push_back({"pair " + std::to_string(i * 8 + j), {j, i}});
    for (int i = 0; i < 8; ++i) groups.push_back({"alone " + std::to_string(i), {i}});
    groups.push_back({"backwards", {7, 6, 5, 4, 3, 2, 1, 0}});
    return groups;
}

using Through = HostCommunicatorMaker::Through;

class Groups : public ::testing::TestWithParam<Through> {
  protected:
    static LocalRanksOptions options() {
        LocalRanksOptions options;
        options.through = GetParam();
        return options;
    }
};

std::string through_name(const ::testing::TestParamInfo<Through>& through) {
    return through.param == Through::kNetwork ? "network" : "shared_memory";
}

INSTANTIATE_TEST_SUITE_P(All, Groups, ::testing::Values(Through::kNetwork, Through::kSharedMemoryWherePossible),
                         through_name);

TEST_P(Groups, ManyAreMadeInMuchLessThanASecond) {
    const auto results = run_ranks(
        8,
        [](LocalRank& local) {
            local.control.all_gather({});
            const auto begin = GroupsClock::now();
            const auto first = local.communicators.make(many_groups());
            const auto between = GroupsClock::now();
            const auto second = local.communicators.make(many_groups());
            const auto end = GroupsClock::now();
            for (std::size_t i = 0; i < first.size(); ++i) {
                const GroupSpec group = many_groups()[i];
                const auto own = std::find(group.members.begin(), group.members.end(), local.rank);
                EXPECT_EQ(first[i] != nullptr, own != group.members.end()) << group.name;
                if (!first[i]) continue;
                EXPECT_EQ(first[i]->name(), group.name);
                EXPECT_EQ(first[i]->rank(), own - group.members.begin());
                EXPECT_EQ(first[i]->size(), static_cast<int>(group.members.size()));
            }
            EXPECT_LT(end - begin,
                      std::chrono::milliseconds(3000));  // a listening storm takes longer, even on a busy machine
            return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(between - begin).count()) +
                   " ms, " +
                   std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(end - between).count()) + " us";
        },
        options());
    for (const std::string& result : results) RecordProperty("made", result);
    std::printf("45 groups of 8 processes, first and second time: %s\n", results[0].c_str());
}

TEST_P(Groups, ThatOverlapWorkAtOnceInWhateverOrderTheyAreWaitedFor) {
    run_ranks(
        8,
        [](LocalRank& local) {
            const auto groups = local.communicators.make(many_groups());
            std::vector<std::vector<float>> values(groups.size());
            std::vector<std::unique_ptr<Work>> works;
            for (std::size_t i = 0; i < groups.size(); ++i) {
                if (!groups[i]) continue;
                values[i].assign(3000 + 17 * i, static_cast<float>(local.rank + 1));
                works.push_back(groups[i]->all_reduce(row_of(values[i]), ReduceOperation::kSum));
            }
            for (std::size_t k = 0; k < works.size(); ++k)  // backwards in every second rank
                works[local.rank % 2 == 0 ? k : works.size() - 1 - k]->wait();
            for (std::size_t i = 0; i < groups.size(); ++i) {
                if (!groups[i]) continue;
                float sum = 0.0f;
                const GroupSpec group = many_groups()[i];
                for (const int member : group.members) sum += static_cast<float>(member + 1);
                EXPECT_THAT(values[i], ::testing::Each(sum)) << groups[i]->name();
            }
        },
        options());
}

TEST_P(Groups, ACollectiveThatWaitsForAMemberHoldsUpNoOtherGroup) {
    run_ranks(
        3,
        [](LocalRank& local) {
            const auto groups = local.communicators.make({{"late", {0, 1}}, {"soon", {0, 2}}, {"start", {1, 2}}});
            std::vector<float> late(100'000, 1.0f), soon(100'000, 1.0f), start(1, 1.0f);
            // Rank 1 takes part in "late" only once it has heard that "soon" is through.
            if (local.rank == 0) {
                const auto first = groups[0]->all_reduce(row_of(late), ReduceOperation::kSum);
                groups[1]->all_reduce(row_of(soon), ReduceOperation::kSum)->wait();
                first->wait();
                EXPECT_EQ(late[5], 2.0f);
            } else if (local.rank == 2) {
                groups[1]->all_reduce(row_of(soon), ReduceOperation::kSum)->wait();
                groups[2]->broadcast(row_of(start), 1)->wait();
            } else {
                groups[2]->broadcast(row_of(start), 1)->wait();
                groups[0]->all_reduce(row_of(late), ReduceOperation::kSum)->wait();
            }
        },
        options());
}

TEST_P(Groups, AnExchangeThatWaitsForAPeerHoldsUpNoOtherPeer) {
    run_ranks(
        3,
        [](LocalRank& local) {
            const auto groups = local.communicators.make(one_group(3));
            std::vector<float> from_1(50'000), from_2(50'000), to(50'000, static_cast<float>(local.rank)),
                word(1, 3.0f);
            if (local.rank == 0) {
                const auto first = groups[0]->exchange(std::vector<Message>{{false, 1, row_of(from_1)}});
                groups[0]->exchange(std::vector<Message>{{false, 2, row_of(from_2)}})->wait();
                groups[0]->exchange(std::vector<Message>{{true, 1, row_of(word)}})->wait();
                first->wait();
                EXPECT_EQ(from_1[49'999], 1.0f);
                EXPECT_EQ(from_2[49'999], 2.0f);
            } else if (local.rank == 1) {
                groups[0]->exchange(std::vector<Message>{{false, 0, row_of(word)}})->wait();
                groups[0]->exchange(std::vector<Message>{{true, 0, row_of(to)}})->wait();
            } else {
                groups[0]->exchange(std::vector<Message>{{true, 0, row_of(to)}})->wait();
            }
        },
        options());
}

TEST_P(Groups, CallsAfterAnExchangeSeeItsMessages) {
    run_ranks(
        2,
        [](LocalRank& local) {
            const auto groups = local.communicators.make(one_group(2));
            for (int round = 0; round < 20; ++round) {
                std::vector<float> values(20'000, static_cast<float>(local.rank));
                // Rank 1's ones go to rank 0 before both add up; the last message follows the sum.
                const auto moved =
                    groups[0]->exchange(std::vector<Message>{{local.rank == 1, 1 - local.rank, row_of(values)}});
                const auto added = groups[0]->all_reduce(row_of(values), ReduceOperation::kSum);
                std::vector<float> back(20'000);
                const auto returned = groups[0]->exchange(
                    std::vector<Message>{{local.rank == 0, 1 - local.rank, row_of(local.rank == 0 ? values : back)}});
                returned->wait();
                added->wait();
                moved->wait();
                EXPECT_THAT(local.rank == 0 ? values : back, ::testing::Each(2.0f));
            }
        },
        options());
}

TEST(Rings, MoveNoMoreThanTheyMust) {
    LocalRanksOptions options;
    options.through = Through::kNetwork;
    run_ranks(
        4,
        [](LocalRank& local) {
            const auto& communicators = dynamic_cast<HostCommunicatorMaker&>(local.communicators);
            const auto groups = local.communicators.make(one_group(4));
            const std::int64_t count = 1 << 20, bytes = 4 * count;
            std::vector<float> whole(static_cast<std::size_t>(count)), part(static_cast<std::size_t>(count / 4));
            std::int64_t before = communicators.bytes_sent();
            const auto sent = [&] {
                return static_cast<double>(communicators.bytes_sent() -
                                           std::exchange(before, communicators.bytes_sent()));
            };
            const double ideal = 0.75 * static_cast<double>(bytes);
            groups[0]->reduce_scatter(row_of(whole), row_of(part))->wait();
            EXPECT_LE(sent(), 1.1 * ideal);
            groups[0]->all_gather(row_of(part), row_of(whole))->wait();
            EXPECT_LE(sent(), 1.1 * ideal);
            groups[0]->all_reduce(row_of(whole), ReduceOperation::kSum)->wait();
            EXPECT_LE(sent(), 1.1 * 2.0 * ideal);
            EXPECT_EQ(sent(), 0.0);
        },
        options);
}

/// Executes the messages of a program as the schedule generator says they are to be executed: batched ones wait for the
/// whole batch, single ones do not block, except that a receive is waited for before it is needed.
class ProgramMessages {
  public:
    ProgramMessages(Communicator& pipeline, const scenarios::Layout& layout) : pipeline_(pipeline), layout_(layout) {}

    void run(const scenarios::Program& program) {
        std::vector<Message> batch;
        std::vector<std::vector<float>> kept;
        for (std::size_t i = 0; i < program.size(); ++i) {
            const scenarios::Instruction& instruction = program[i];
            if (scenarios::is_message(instruction.op)) {
                batch.push_back(message_of(instruction));
                const bool more = i + 1 < program.size() && program[i + 1].batched;
                if (more) continue;
                std::unique_ptr<Work> work = pipeline_.exchange(batch);
                const bool blocks =
                    !layout_.overlap_pipeline_comm && layout_.schedule != scenarios::Schedule::kZeroBubble;
                if (blocks) work->wait();
                pending_.push_back(std::move(work));
                batch.clear();
            } else {
                check_inputs(instruction);
            }
        }
        for (const auto& work : pending_) work->wait();
    }
    int checked() const { return checked_; }

  private:
    using Key = std::tuple<bool, int, int>;  ///< forward?, virtual stage that it enters or leaves, micro-batch

    int stages() const { return layout_.pipeline; }
    int virtual_stage(const scenarios::Instruction& instruction) const {
        return instruction.chunk * stages() + pipeline_.rank();
    }
    static float content(bool forward, int stage, int micro_batch) {
        return static_cast<float>((forward ? 1000 : -1000) * (stage + 1) + micro_batch);
    }
    Message message_of(const scenarios::Instruction& instruction) {
        const bool forward =
            instruction.op == scenarios::Op::kSendActivation || instruction.op == scenarios::Op::kReceiveActivation;
        const bool send =
            instruction.op == scenarios::Op::kSendActivation || instruction.op == scenarios::Op::kSendGradient;
        const int stage = virtual_stage(instruction);
        const int other = stage + (forward == send ? 1 : -1);
        auto& values = buffers_[{send, forward, stage, instruction.micro_batch}];
        values.assign(10'000, send ? content(forward, stage, instruction.micro_batch) : 0.0f);
        if (!send) received_[{forward, stage, instruction.micro_batch}] = {&values, pending_.size()};
        return {send, other % stages(), row_of(values)};
    }
    void check_inputs(const scenarios::Instruction& instruction) {
        const bool forward = instruction.op == scenarios::Op::kForward;
        if (!forward && instruction.op != scenarios::Op::kBackward && instruction.op != scenarios::Op::kBackwardInput)
            return;
        const int stage = virtual_stage(instruction);
        const auto found = received_.find({forward, stage, instruction.micro_batch});
        if (found == received_.end()) return;
        const auto& [values, work] = found->second;
        pending_.at(work)->wait();
        EXPECT_THAT(*values, ::testing::Each(content(forward, stage + (forward ? -1 : 1), instruction.micro_batch)));
        ++checked_;
    }

    Communicator& pipeline_;
    scenarios::Layout layout_;
    std::map<std::tuple<bool, bool, int, int>, std::vector<float>> buffers_;
    std::map<Key, std::pair<std::vector<float>*, std::size_t>> received_;
    std::vector<std::unique_ptr<Work>> pending_;
    int checked_ = 0;
};

TEST_P(Groups, PipelineProgramsOfEverySchedulePassTheirMessages) {
    using scenarios::Schedule;
    run_ranks(
        4,
        [](LocalRank& local) {
            const auto groups = local.communicators.make({{"pipeline 0", everybody(4)}});
            for (const Schedule schedule :
                 {Schedule::kGPipe, Schedule::kOneForwardOneBackward, Schedule::kInterleaved, Schedule::kZeroBubble}) {
                for (const bool overlap : {false, true}) {
                    scenarios::Layout layout;
                    layout.pipeline = 4;
                    layout.schedule = schedule;
                    layout.virtual_pipeline = schedule == Schedule::kInterleaved ? 2 : 1;
                    layout.overlap_pipeline_comm = overlap;
                    ProgramMessages messages(*groups[0], layout);
                    messages.run(scenarios::make_program(layout, false, local.rank, 8));
                    const int chunks = layout.virtual_pipeline;
                    const int ends = (local.rank == 0 ? 1 : 0) + (local.rank == 3 ? 1 : 0);
                    EXPECT_EQ(messages.checked(), 8 * (2 * chunks - ends));
                }
            }
        },
        options());
}

}  // namespace
}  // namespace headway::backend
