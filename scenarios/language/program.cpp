#include "scenarios/language/program.h"

#include <algorithm>
#include <limits>
#include <span>
#include <stdexcept>
#include <tuple>

namespace headway::scenarios {

namespace {

Instruction of_chunk(Op op, int chunk) {
    return {op, static_cast<std::int16_t>(chunk), false, 0};
}
Instruction like(const Instruction& step, Op op) {
    return {op, step.chunk, false, step.micro_batch};
}

bool is_backward(Op op) {
    return op == Op::kBackward || op == Op::kBackwardInput;
}
bool in_first_stage(int stage, const Instruction& step) {
    return stage == 0 && step.chunk == 0;
}
bool in_last_stage(const Layout& layout, int stage, const Instruction& step) {
    return stage == layout.pipeline - 1 && step.chunk == layout.virtual_pipeline - 1;
}

/// Messages right around the computes that need or make their contents. With `batched`, messages between two computes
/// that go to or come from one neighbour form a batch; where the schedule is interleaved, a forward and the backward
/// that follows it stand between two batches with both neighbours (messages between the two would deadlock around the
/// ring).
class MessagesAroundComputes {
  public:
    MessagesAroundComputes(const Layout& layout, int stage, const Program& order, std::size_t first_pair, bool batched)
        : layout_(layout), stage_(stage), order_(order), first_pair_(first_pair), batched_(batched) {}

    Program write() {
        for (std::size_t i = 0; i < order_.size();) {
            const bool pair = i >= first_pair_ && order_[i].op == Op::kForward;
            const std::span<const Instruction> steps(&order_[i], pair ? 2 : 1);
            for (const Instruction& step : steps) {
                if (step.op == Op::kForward && !in_first_stage(stage_, step)) message(Op::kReceiveActivation, step);
                if (is_backward(step.op) && !in_last_stage(layout_, stage_, step)) message(Op::kReceiveGradient, step);
            }
            out_.insert(out_.end(), steps.begin(), steps.end());
            for (const Instruction& step : steps) {
                if (step.op == Op::kForward && !in_last_stage(layout_, stage_, step))
                    message(Op::kSendActivation, step);
                if (is_backward(step.op) && !in_first_stage(stage_, step)) message(Op::kSendGradient, step);
            }
            i += steps.size();
        }
        return std::move(out_);
    }

  private:
    void message(Op op, const Instruction& step) {
        const bool next = op == Op::kSendActivation || op == Op::kReceiveGradient;
        const bool follows = !out_.empty() && is_message(out_.back().op);
        out_.push_back(like(step, op));
        out_.back().batched = batched_ && follows && (layout_.virtual_pipeline > 1 || next == last_to_next_);
        last_to_next_ = next;
    }

    const Layout& layout_;
    const int stage_;
    const Program& order_;
    const std::size_t first_pair_;  // from here a forward and the backward after it are one step
    const bool batched_;
    bool last_to_next_ = false;  // neighbour of the last message
    Program out_;
};

/// Start of every compute when forward, input gradient and weight gradient take 1000 units each and a message takes 1.
std::vector<std::vector<std::int64_t>> nominal_starts(const std::vector<Program>& orders, int micro_batches) {
    constexpr std::int64_t kCompute = 1000, kMessage = 1, kUnknown = -1;
    const std::size_t stages = orders.size();
    std::vector<std::vector<std::int64_t>> starts(stages);
    std::vector<std::int64_t> free(stages, 0);
    const std::vector<std::int64_t> none(static_cast<std::size_t>(micro_batches), kUnknown);
    std::vector<std::vector<std::int64_t>> forward_end(stages, none), backward_end(stages, none);
    for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t s = 0; s < stages; ++s) {
            while (starts[s].size() < orders[s].size()) {
                const Instruction& step = orders[s][starts[s].size()];
                const auto i = static_cast<std::size_t>(step.micro_batch);
                std::int64_t input = 0;
                if (step.op == Op::kForward && s > 0) input = forward_end[s - 1][i];
                if (step.op == Op::kBackwardInput && s + 1 < stages) input = backward_end[s + 1][i];
                if (input == kUnknown) break;
                const std::int64_t start = std::max(free[s], input > 0 ? input + kMessage : 0);
                free[s] = start + kCompute;
                if (step.op == Op::kForward) forward_end[s][i] = free[s];
                if (step.op == Op::kBackwardInput) backward_end[s][i] = free[s];
                starts[s].push_back(start);
                moved = true;
            }
        }
    }
    return starts;
}

/// Zero-bubble: both ends post a message at the moment when its sender has it in a nominal run, so both come to the
/// messages of a link in the same order. At equal times messages come before computes, in the order of sending stages.
std::vector<Program> messages_in_nominal_order(const std::vector<Program>& orders, int micro_batches) {
    using Node =
        std::tuple<std::int64_t, int, std::size_t, std::size_t, Instruction>;  // time, place at equal times, what
    const std::size_t stages = orders.size();
    const int computes = static_cast<int>(stages);  // after the messages of every stage
    const std::vector<std::vector<std::int64_t>> starts = nominal_starts(orders, micro_batches);
    std::vector<std::vector<Node>> nodes(stages);
    for (std::size_t s = 0; s < stages; ++s) {
        for (std::size_t i = 0; i < orders[s].size(); ++i) {
            const Instruction& step = orders[s][i];
            const std::int64_t end = starts[s][i] + 1000;
            nodes[s].emplace_back(starts[s][i], computes, s, i, step);
            if (step.op == Op::kForward && s + 1 < stages) {
                nodes[s].emplace_back(end, static_cast<int>(s), s, i, like(step, Op::kSendActivation));
                nodes[s + 1].emplace_back(end, static_cast<int>(s), s, i, like(step, Op::kReceiveActivation));
            }
            if (step.op == Op::kBackwardInput && s > 0) {
                nodes[s].emplace_back(end, static_cast<int>(s), s, i, like(step, Op::kSendGradient));
                nodes[s - 1].emplace_back(end, static_cast<int>(s), s, i, like(step, Op::kReceiveGradient));
            }
        }
    }
    std::vector<Program> programs(stages);
    for (std::size_t s = 0; s < stages; ++s) {
        std::sort(nodes[s].begin(), nodes[s].end(), [](const Node& a, const Node& b) {
            return std::tie(std::get<0>(a), std::get<1>(a), std::get<3>(a)) <
                   std::tie(std::get<0>(b), std::get<1>(b), std::get<3>(b));
        });
        for (const Node& node : nodes[s]) programs[s].push_back(std::get<4>(node));
    }
    return programs;
}

/// Adds reductions, optimizer and gathering to the forwards, backwards and messages of a stage.
Program with_update(const Layout& layout, bool tied_embedding, int stage, int micro_batches, const Program& body) {
    const bool replicated = layout.data * layout.context > 1;
    const bool gathers = replicated && layout.distributed_optimizer;
    const bool tied = tied_embedding && layout.pipeline > 1 && (stage == 0 || stage == layout.pipeline - 1);
    const bool tied_first = layout.distributed_optimizer && !layout.overlap_grad_reduce;
    const Instruction reduce_tied = of_chunk(Op::kReduceTiedEmbedding, stage == 0 ? 0 : layout.virtual_pipeline - 1);
    const Op completes = layout.schedule == Schedule::kZeroBubble ? Op::kBackwardWeight : Op::kBackward;
    std::vector<int> left(static_cast<std::size_t>(layout.virtual_pipeline), micro_batches);  // backwards still to come
    Program program;
    program.reserve(body.size() + 8);

    if (gathers && layout.overlap_param_gather)
        for (int c = 0; c < layout.virtual_pipeline; ++c) program.push_back(of_chunk(Op::kGatherParameters, c));
    for (const Instruction& step : body) {
        program.push_back(step);
        if (step.op == completes && --left[static_cast<std::size_t>(step.chunk)] == 0 && replicated &&
            layout.overlap_grad_reduce)
            program.push_back(of_chunk(Op::kReduceGradients, step.chunk));
    }
    if (tied && tied_first) program.push_back(reduce_tied);
    if (replicated && !layout.overlap_grad_reduce)
        for (int c = 0; c < layout.virtual_pipeline; ++c) program.push_back(of_chunk(Op::kReduceGradients, c));
    if (tied && !tied_first) program.push_back(reduce_tied);
    program.push_back(of_chunk(Op::kOptimizerStep, 0));
    if (gathers && !layout.overlap_param_gather)
        for (int c = 0; c < layout.virtual_pipeline; ++c) program.push_back(of_chunk(Op::kGatherParameters, c));
    return program;
}

}  // namespace

std::vector<Program> make_programs(const Layout& layout, bool tied_embedding, int micro_batches) {
    std::vector<Program> programs;
    for (int s = 0; s < layout.pipeline; ++s) programs.push_back(compute_order(layout, s, micro_batches));
    const bool blocking = !layout.overlap_pipeline_comm;
    if (blocking && layout.schedule == Schedule::kZeroBubble) {
        programs = messages_in_nominal_order(programs, micro_batches);
    } else {
        for (int s = 0; s < layout.pipeline; ++s) {
            Program& program = programs[static_cast<std::size_t>(s)];
            const std::size_t first_pair = blocking && layout.virtual_pipeline > 1
                                               ? static_cast<std::size_t>(warmup_forwards(layout, s, micro_batches))
                                               : std::numeric_limits<std::size_t>::max();
            program = MessagesAroundComputes(layout, s, program, first_pair, blocking).write();
        }
    }
    for (int s = 0; s < layout.pipeline; ++s) {
        Program& program = programs[static_cast<std::size_t>(s)];
        program = with_update(layout, tied_embedding, s, micro_batches, program);
    }
    return programs;
}

Program make_program(const Layout& layout, bool tied_embedding, int stage, int micro_batches) {
    if (stage < 0 || stage >= layout.pipeline) throw std::invalid_argument("no such stage");
    return make_programs(layout, tied_embedding, micro_batches)[static_cast<std::size_t>(stage)];
}

}  // namespace headway::scenarios
