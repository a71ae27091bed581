#include "scenarios/language/program.h"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headway::scenarios::program_test {
namespace {

using ::testing::ElementsAre;

Layout layout_of(Schedule schedule, int pipeline, int chunks = 1) {
    Layout layout;
    layout.schedule = schedule;
    layout.pipeline = pipeline;
    layout.virtual_pipeline = chunks;
    layout.data = 2;
    return layout;
}

struct Shape {
    Layout layout;
    int micro_batches;
};

/// Every schedule on short and long pipelines, with fewer, as many and more micro-batches than stages.
std::vector<Shape> shapes() {
    std::vector<Shape> all;
    for (const int p : {1, 2, 3, 4, 8})
        for (const int m : {1, 2, 3, 4, 7, 8, 16, 24})
            for (const Schedule schedule : {Schedule::kGPipe, Schedule::kOneForwardOneBackward, Schedule::kZeroBubble})
                all.push_back({layout_of(schedule, p), m});
    for (const int p : {1, 2, 4, 8})
        for (const int m : {1, 2, 5, 8, 24, 40}) {
            Layout layout = layout_of(Schedule::kZeroBubble, p);
            layout.zero_bubble_memory = 2;
            all.push_back({layout, m});
        }
    for (const int p : {2, 3, 4, 8})
        for (const int v : {2, 3, 5})
            for (const int groups : {1, 2, 3, 6}) {
                Layout layout = layout_of(Schedule::kInterleaved, p, v);
                all.push_back({layout, p * groups});
                layout.overlap_pipeline_comm = true;
                all.push_back({layout, p * groups});
            }
    return all;
}

std::string text_of(const Shape& shape) {
    return "schedule " + std::to_string(static_cast<int>(shape.layout.schedule)) + " p" +
           std::to_string(shape.layout.pipeline) + " v" + std::to_string(shape.layout.virtual_pipeline) + " m" +
           std::to_string(shape.micro_batches);
}

std::vector<Program> programs_of(const Shape& shape, bool tied = false) {
    std::vector<Program> programs;
    for (int s = 0; s < shape.layout.pipeline; ++s)
        programs.push_back(make_program(shape.layout, tied, s, shape.micro_batches));
    return programs;
}

/// "F0 F1 B0 ...", chunks as "F1.0" (chunk 1, micro-batch 0).
std::string order_text(const Layout& layout, int stage, int micro_batches) {
    std::string text;
    for (const Instruction& step : compute_order(layout, stage, micro_batches)) {
        if (!text.empty()) text += ' ';
        text += step.op == Op::kForward ? "F" : step.op == Op::kBackwardWeight ? "W" : "B";
        if (layout.virtual_pipeline > 1) text += std::to_string(step.chunk) + ".";
        text += std::to_string(step.micro_batch);
    }
    return text;
}

/// What travels between which virtual stages: (gradient?, sending virtual stage, micro-batch).
using Message = std::tuple<bool, int, int>;

Message message_of(const Layout& layout, int stage, const Instruction& step) {
    const int k = step.chunk * layout.pipeline + stage;
    switch (step.op) {
        case Op::kSendActivation:
            return {false, k, step.micro_batch};
        case Op::kReceiveActivation:
            return {false, k - 1, step.micro_batch};
        case Op::kSendGradient:
            return {true, k, step.micro_batch};
        default:
            return {true, k + 1, step.micro_batch};
    }
}

bool sends(Op op) {
    return op == Op::kSendActivation || op == Op::kSendGradient;
}

TEST(Program, OrdersForwardsAndBackwardsAsPublished) {
    EXPECT_EQ(order_text(layout_of(Schedule::kGPipe, 4), 2, 3), "F0 F1 F2 B0 B1 B2");
    const Layout plain = layout_of(Schedule::kOneForwardOneBackward, 4);
    EXPECT_EQ(order_text(plain, 0, 6), "F0 F1 F2 F3 B0 F4 B1 F5 B2 B3 B4 B5");
    EXPECT_EQ(order_text(plain, 3, 3), "F0 B0 F1 B1 F2 B2");
    const Layout split =
        layout_of(Schedule::kZeroBubble, 4);  // Qi et al. 2023, figure 3 (top), with 4 stages and 8 micro-batches
    EXPECT_EQ(order_text(split, 0, 8), "F0 F1 F2 F3 B0 W0 F4 B1 W1 F5 B2 W2 F6 B3 W3 F7 B4 W4 B5 W5 B6 W6 B7 W7");
    EXPECT_EQ(order_text(split, 3, 8), "F0 B0 F1 B1 F2 B2 F3 B3 W0 F4 B4 W1 F5 B5 W2 F6 B6 W3 F7 B7 W4 W5 W6 W7");
    // Narayanan et al. 2021, figure 4 (bottom): 4 stages, 2 chunks, 8 micro-batches; the last stage.
    EXPECT_EQ(order_text(layout_of(Schedule::kInterleaved, 4, 2), 3, 8),
              "F0.0 F0.1 F0.2 F0.3 F1.0 B1.0 F1.1 B1.1 F1.2 B1.2 F1.3 B1.3 F0.4 B0.0 F0.5 B0.1 F0.6 B0.2 F0.7 B0.3 "
              "F1.4 B1.4 F1.5 B1.5 F1.6 B1.6 F1.7 B1.7 B0.4 B0.5 B0.6 B0.7");
}

TEST(Program, EveryMicroBatchPassesEveryVirtualStageOnceForwardAndOnceBackward) {
    for (const Shape& shape : shapes()) {
        const bool split = shape.layout.schedule == Schedule::kZeroBubble;
        for (const Program& program : programs_of(shape)) {
            std::map<std::tuple<Op, int, int>, int> seen;
            std::set<std::pair<int, int>> forward_done, backward_done;
            for (const Instruction& step : program) {
                if (!is_compute(step.op)) continue;
                ++seen[{step.op, step.chunk, step.micro_batch}];
                const std::pair<int, int> key{step.chunk, step.micro_batch};
                if (step.op == Op::kForward) {
                    forward_done.insert(key);
                } else if (step.op == Op::kBackwardWeight) {
                    EXPECT_TRUE(backward_done.contains(key)) << text_of(shape);
                } else {
                    EXPECT_TRUE(forward_done.contains(key)) << text_of(shape);
                    backward_done.insert(key);
                }
            }
            const auto passes = static_cast<std::size_t>(shape.micro_batches * shape.layout.virtual_pipeline);
            EXPECT_EQ(seen.size(), passes * (split ? 3 : 2)) << text_of(shape);
            for (const auto& [key, count] : seen) {
                EXPECT_EQ(count, 1) << text_of(shape);
                EXPECT_EQ(split, std::get<0>(key) == Op::kBackwardInput || std::get<0>(key) == Op::kBackwardWeight ||
                                     (split && std::get<0>(key) == Op::kForward))
                    << text_of(shape);
            }
        }
    }
}

TEST(Program, EverySendHasItsReceive) {
    for (const Shape& shape : shapes()) {
        std::map<Message, int> sent, received;
        const std::vector<Program> programs = programs_of(shape);
        for (int s = 0; s < shape.layout.pipeline; ++s)
            for (const Instruction& step : programs[static_cast<std::size_t>(s)])
                if (is_message(step.op)) ++(sends(step.op) ? sent : received)[message_of(shape.layout, s, step)];
        EXPECT_EQ(sent, received) << text_of(shape);
        const auto hops = static_cast<std::size_t>(2 * (shape.layout.virtual_stages() - 1) * shape.micro_batches);
        EXPECT_EQ(sent.size(), hops) << text_of(shape);
        for (const auto& [message, count] : sent) EXPECT_EQ(count, 1) << text_of(shape);
    }
}

/// Runs programs as Megatron-LM does without overlap: a message travels when both ends have come to it, and a batch
/// holds its program until all of its messages are through. Returns whether every program reaches its end.
bool finishes_with_blocking_batches(const Layout& layout, const std::vector<Program>& programs) {
    std::vector<std::size_t> at(programs.size(), 0);
    std::set<Message> sent, received;
    for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t s = 0; s < programs.size(); ++s) {
            while (at[s] < programs[s].size()) {
                std::size_t end = at[s] + 1;
                while (end < programs[s].size() && programs[s][end].batched) ++end;
                bool complete = true;
                for (std::size_t i = at[s]; i < end; ++i) {
                    const Instruction& step = programs[s][i];
                    if (!is_message(step.op)) continue;
                    const Message message = message_of(layout, static_cast<int>(s), step);
                    (sends(step.op) ? sent : received).insert(message);
                    complete = complete && sent.contains(message) && received.contains(message);
                }
                if (!complete) break;
                at[s] = end;
                moved = true;
            }
        }
    }
    for (std::size_t s = 0; s < programs.size(); ++s)
        if (at[s] != programs[s].size()) return false;
    return true;
}

TEST(Program, BlockingBatchesNeverDeadlock) {
    for (const Shape& shape : shapes()) {
        if (shape.layout.overlap_pipeline_comm || shape.layout.schedule == Schedule::kZeroBubble) continue;
        EXPECT_TRUE(finishes_with_blocking_batches(shape.layout, programs_of(shape))) << text_of(shape);
    }
}

TEST(Program, SingleBlockingMessagesWouldDeadlockIn1F1B) {
    // The test above can fail: without batches a send and the other side's send wait for each other.
    const Shape shape{layout_of(Schedule::kOneForwardOneBackward, 4), 8};
    std::vector<Program> programs = programs_of(shape);
    for (Program& program : programs)
        for (Instruction& step : program) step.batched = false;
    EXPECT_FALSE(finishes_with_blocking_batches(shape.layout, programs));
}

TEST(Program, ZeroBubbleComesToTheMessagesOfALinkInOneOrder) {
    for (const Shape& shape : shapes()) {
        if (shape.layout.schedule != Schedule::kZeroBubble) continue;
        const std::vector<Program> programs = programs_of(shape);
        for (int s = 0; s + 1 < shape.layout.pipeline; ++s) {
            std::vector<Message> here, there;
            for (const Instruction& step : programs[static_cast<std::size_t>(s)])
                if (step.op == Op::kSendActivation || step.op == Op::kReceiveGradient)
                    here.push_back(message_of(shape.layout, s, step));
            for (const Instruction& step : programs[static_cast<std::size_t>(s) + 1])
                if (step.op == Op::kReceiveActivation || step.op == Op::kSendGradient)
                    there.push_back(message_of(shape.layout, s + 1, step));
            EXPECT_EQ(here, there) << text_of(shape);
        }
    }
}

TEST(Program, ReceivesComeBeforeAndSendsAfterTheirCompute) {
    for (const Shape& shape : shapes()) {
        const std::vector<Program> programs = programs_of(shape);
        for (int s = 0; s < shape.layout.pipeline; ++s) {
            std::set<std::tuple<Op, int, int>> before;
            for (const Instruction& step : programs[static_cast<std::size_t>(s)]) {
                const int k = step.chunk * shape.layout.pipeline + s;
                const auto has = [&](Op op) { return before.contains({op, step.chunk, step.micro_batch}); };
                const bool split = shape.layout.schedule == Schedule::kZeroBubble;
                const bool last = k == shape.layout.virtual_stages() - 1;
                if (step.op == Op::kForward) {
                    EXPECT_TRUE(k == 0 || has(Op::kReceiveActivation)) << text_of(shape);
                } else if (step.op == Op::kBackward || step.op == Op::kBackwardInput) {
                    EXPECT_TRUE(last || has(Op::kReceiveGradient)) << text_of(shape);
                } else if (step.op == Op::kSendActivation) {
                    EXPECT_TRUE(has(Op::kForward)) << text_of(shape);
                } else if (step.op == Op::kSendGradient) {
                    EXPECT_TRUE(has(split ? Op::kBackwardInput : Op::kBackward)) << text_of(shape);
                }
                before.insert({step.op, step.chunk, step.micro_batch});
            }
        }
    }
}

TEST(Program, HoldsAsManyActivationsAsTheScheduleAllows) {
    for (const Shape& shape : shapes()) {
        const int p = shape.layout.pipeline, v = shape.layout.virtual_pipeline, m = shape.micro_batches;
        for (int s = 0; s < p; ++s) {
            const std::vector<int> held = in_flight_at_peak(shape.layout, s, m);
            const int sum = std::accumulate(held.begin(), held.end(), 0);
            int bound = m;  // GPipe
            if (shape.layout.schedule == Schedule::kOneForwardOneBackward) bound = std::min(p - s, m);
            if (shape.layout.schedule == Schedule::kZeroBubble)
                bound = std::min(p * shape.layout.zero_bubble_memory, m);
            if (shape.layout.schedule == Schedule::kInterleaved)  // warm-up of Megatron-LM, plus one
                bound = m == p ? m * v : std::min((p - s - 1) * 2 + (v - 1) * p + 1, m * v);
            EXPECT_EQ(sum, bound) << text_of(shape) << " stage " << s;
        }
    }
}

TEST(Program, PeakFollowsTheWeightsOfTheChunks) {
    const Layout layout = layout_of(Schedule::kInterleaved, 2, 2);
    EXPECT_THAT(in_flight_at_peak(layout, 0, 4, std::vector<double>{1.0, 0.0}), ElementsAre(4, 1));
    EXPECT_THAT(in_flight_at_peak(layout, 0, 4, std::vector<double>{0.0, 1.0}), ElementsAre(2, 2));
    EXPECT_THROW(in_flight_at_peak(layout, 0, 4, std::vector<double>{1.0}), std::invalid_argument);
}

TEST(Program, ReducesGradientsRightAfterTheLastBackwardOfAChunkWhenOverlapped) {
    Layout layout = layout_of(Schedule::kInterleaved, 2, 2);
    layout.overlap_grad_reduce = true;
    const Program program = make_program(layout, false, 0, 4);
    std::vector<int> reduced;
    std::map<int, int> backwards;
    for (std::size_t i = 0; i < program.size(); ++i) {
        if (program[i].op == Op::kBackward) ++backwards[program[i].chunk];
        if (program[i].op != Op::kReduceGradients) continue;
        reduced.push_back(program[i].chunk);
        EXPECT_EQ(backwards[program[i].chunk], 4);
    }
    EXPECT_THAT(reduced, ElementsAre(1, 0));
    EXPECT_EQ(program.back().op, Op::kOptimizerStep);
}

std::vector<Op> tail_of(const Layout& layout, bool tied, int stage) {
    std::vector<Op> tail;
    for (const Instruction& step : make_program(layout, tied, stage, 4))
        if (!is_compute(step.op) && !is_message(step.op)) tail.push_back(step.op);
    return tail;
}

TEST(Program, EndsWithReductionOptimizerAndGathering) {
    Layout layout = layout_of(Schedule::kOneForwardOneBackward, 3);
    layout.distributed_optimizer = true;
    EXPECT_THAT(tail_of(layout, true, 0),
                ElementsAre(Op::kReduceTiedEmbedding, Op::kReduceGradients, Op::kOptimizerStep, Op::kGatherParameters));
    EXPECT_THAT(tail_of(layout, true, 1), ElementsAre(Op::kReduceGradients, Op::kOptimizerStep, Op::kGatherParameters));
    layout.overlap_param_gather = true;
    EXPECT_THAT(tail_of(layout, false, 2),
                ElementsAre(Op::kGatherParameters, Op::kReduceGradients, Op::kOptimizerStep));
    layout.overlap_grad_reduce = true;
    EXPECT_THAT(tail_of(layout, true, 2),
                ElementsAre(Op::kGatherParameters, Op::kReduceGradients, Op::kReduceTiedEmbedding, Op::kOptimizerStep));
    layout.data = 1;
    EXPECT_THAT(tail_of(layout, true, 2), ElementsAre(Op::kReduceTiedEmbedding, Op::kOptimizerStep));
    layout.pipeline = 1;
    EXPECT_THAT(tail_of(layout, true, 0), ElementsAre(Op::kOptimizerStep));
}

TEST(Program, RefusesWhatCannotBeScheduled) {
    EXPECT_THROW(make_program(layout_of(Schedule::kInterleaved, 4, 2), false, 0, 6), std::invalid_argument);
    EXPECT_THROW(make_program(layout_of(Schedule::kInterleaved, 1, 2), false, 0, 6), std::invalid_argument);
    EXPECT_THROW(make_program(layout_of(Schedule::kGPipe, 4, 2), false, 0, 6), std::invalid_argument);
    EXPECT_THROW(make_program(layout_of(Schedule::kGPipe, 4), false, 4, 6), std::invalid_argument);
    EXPECT_THROW(make_program(layout_of(Schedule::kGPipe, 4), false, 0, 0), std::invalid_argument);
}

}  // namespace
}  // namespace headway::scenarios::program_test
