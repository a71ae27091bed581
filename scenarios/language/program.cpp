#include "scenarios/language/program.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

namespace headway::scenarios {

namespace {

/// Micro-batches that a stage of 1F1B and of ZB-H1 sends forward before its first backward.
int warmup_of_1f1b(int pipeline, int stage, int micro_batches) {
    return std::min(pipeline - stage - 1, micro_batches);
}

/// Forwards, over all chunks, before the first backward of interleaved 1F1B (Megatron-LM, schedules.py). With exactly
/// as many micro-batches as stages Megatron runs every forward first.
int warmup_of_interleaved(const Layout& layout, int stage, int micro_batches) {
    const int total = micro_batches * layout.virtual_pipeline;
    if (micro_batches == layout.pipeline) return total;
    return std::min((layout.pipeline - stage - 1) * 2 + (layout.virtual_pipeline - 1) * layout.pipeline, total);
}

void check_schedule(const Layout& layout, int stage, int micro_batches) {
    if (layout.pipeline < 1 || layout.virtual_pipeline < 1)
        throw std::invalid_argument("pipeline degrees are at least 1");
    if (stage < 0 || stage >= layout.pipeline)
        throw std::invalid_argument("stage " + std::to_string(stage) + " of a pipeline of " +
                                    std::to_string(layout.pipeline));
    if (micro_batches < 1) throw std::invalid_argument("a replica needs at least one micro-batch");
    if (layout.schedule != Schedule::kInterleaved) {
        if (layout.virtual_pipeline != 1) throw std::invalid_argument("only the interleaved schedule has chunks");
        return;
    }
    if (layout.virtual_pipeline == 1) return;
    if (layout.pipeline == 1) throw std::invalid_argument("the interleaved schedule needs more than one stage");
    if (micro_batches % layout.pipeline != 0)
        throw std::invalid_argument("interleaving needs a multiple of " + std::to_string(layout.pipeline) +
                                    " micro-batches a replica, not " + std::to_string(micro_batches));
}

Instruction compute(Op op, int chunk, int micro_batch) {
    return {op, static_cast<std::int16_t>(chunk), static_cast<std::int32_t>(micro_batch)};
}

Program gpipe_order(int micro_batches) {
    Program order;
    for (int i = 0; i < micro_batches; ++i) order.push_back(compute(Op::kForward, 0, i));
    for (int i = 0; i < micro_batches; ++i) order.push_back(compute(Op::kBackward, 0, i));
    return order;
}

/// 1F1B; with `split` ZB-H1, where the weight gradient of micro-batch i waits until the stage has started `stage` more
/// backwards. Every stage then holds at most as many micro-batches as the first one does under 1F1B.
Program one_forward_one_backward_order(int pipeline, int stage, int micro_batches, bool split) {
    const int warmup = warmup_of_1f1b(pipeline, stage, micro_batches);
    Program order;
    for (int i = 0; i < warmup; ++i) order.push_back(compute(Op::kForward, 0, i));
    for (int i = 0; i < micro_batches; ++i) {
        if (warmup + i < micro_batches) order.push_back(compute(Op::kForward, 0, warmup + i));
        order.push_back(compute(split ? Op::kBackwardInput : Op::kBackward, 0, i));
        if (split && i >= stage) order.push_back(compute(Op::kBackwardWeight, 0, i - stage));
    }
    if (split)
        for (int i = std::max(0, micro_batches - stage); i < micro_batches; ++i)
            order.push_back(compute(Op::kBackwardWeight, 0, i));
    return order;
}

/// Position `k` of the stage's forwards (or backwards) stands for a chunk and a micro-batch: `pipeline` micro-batches
/// go through chunk 0, the same ones through chunk 1, and so on; backwards start from the last chunk.
Program interleaved_order(const Layout& layout, int stage, int micro_batches) {
    const int p = layout.pipeline;
    const int v = layout.virtual_pipeline;
    const int total = micro_batches * v;
    const int warmup = warmup_of_interleaved(layout, stage, micro_batches);
    const auto micro_batch = [&](int k) { return k / (p * v) * p + k % p; };
    const auto chunk = [&](int k) { return k % (p * v) / p; };
    Program order;
    for (int k = 0; k < warmup; ++k) order.push_back(compute(Op::kForward, chunk(k), micro_batch(k)));
    for (int k = 0; k < total; ++k) {
        if (warmup + k < total) order.push_back(compute(Op::kForward, chunk(warmup + k), micro_batch(warmup + k)));
        order.push_back(compute(Op::kBackward, v - 1 - chunk(k), micro_batch(k)));
    }
    return order;
}

/// True for the last operation that adds to a chunk's gradient.
bool completes_gradient(const Layout& layout, const Instruction& instruction) {
    return instruction.op == (layout.schedule == Schedule::kZeroBubble ? Op::kBackwardWeight : Op::kBackward);
}

bool is_backward(Op op) {
    return op == Op::kBackward || op == Op::kBackwardInput;
}
bool in_first(int stage, const Instruction& step) {
    return stage == 0 && step.chunk == 0;
}
bool in_last(const Layout& layout, int stage, const Instruction& step) {
    return stage == layout.pipeline - 1 && step.chunk == layout.virtual_pipeline - 1;
}
bool receives_activation(int stage, const Instruction& step) {
    return step.op == Op::kForward && !in_first(stage, step);
}
bool sends_activation(const Layout& layout, int stage, const Instruction& step) {
    return step.op == Op::kForward && !in_last(layout, stage, step);
}
bool receives_gradient(const Layout& layout, int stage, const Instruction& step) {
    return is_backward(step.op) && !in_last(layout, stage, step);
}
bool sends_gradient(int stage, const Instruction& step) {
    return is_backward(step.op) && !in_first(stage, step);
}

}  // namespace

const char* name_of(Op op) {
    switch (op) {
        case Op::kForward:
            return "forward";
        case Op::kBackward:
            return "backward";
        case Op::kBackwardInput:
            return "backward_input";
        case Op::kBackwardWeight:
            return "backward_weight";
        case Op::kSendActivation:
            return "send_activation";
        case Op::kReceiveActivation:
            return "receive_activation";
        case Op::kSendGradient:
            return "send_gradient";
        case Op::kReceiveGradient:
            return "receive_gradient";
        case Op::kReduceGradients:
            return "reduce_gradients";
        case Op::kReduceTiedEmbedding:
            return "reduce_tied_embedding";
        case Op::kOptimizerStep:
            return "optimizer_step";
        case Op::kGatherParameters:
            return "gather_parameters";
    }
    throw std::invalid_argument("not an operation");
}

Program compute_order(const Layout& layout, int stage, int micro_batches) {
    check_schedule(layout, stage, micro_batches);
    switch (layout.schedule) {
        case Schedule::kGPipe:
            return gpipe_order(micro_batches);
        case Schedule::kOneForwardOneBackward:
            return one_forward_one_backward_order(layout.pipeline, stage, micro_batches, false);
        case Schedule::kZeroBubble:
            return one_forward_one_backward_order(layout.pipeline, stage, micro_batches, true);
        case Schedule::kInterleaved:
            if (layout.virtual_pipeline == 1)
                return one_forward_one_backward_order(layout.pipeline, stage, micro_batches, false);
            return interleaved_order(layout, stage, micro_batches);
    }
    throw std::invalid_argument("not a schedule");
}

Program make_program(const Layout& layout, bool tied_embedding, int stage, int micro_batches) {
    const Program order = compute_order(layout, stage, micro_batches);
    const bool replicated = layout.data * layout.context > 1;
    const bool gathers = replicated && layout.distributed_optimizer;
    Program program;
    program.reserve(order.size() * 3 + 8);

    if (gathers && layout.overlap_param_gather)
        for (int c = 0; c < layout.virtual_pipeline; ++c) program.push_back(compute(Op::kGatherParameters, c, 0));

    // Interleaved with blocking messages: a forward and the backward after it are one step between two groups of
    // messages, as in Megatron-LM (send_forward_backward_recv_forward_backward). Messages between the two would
    // deadlock around the ring.
    const bool pairs = layout.virtual_pipeline > 1 && !layout.overlap_pipeline_comm;
    const std::size_t warmup =
        pairs ? static_cast<std::size_t>(warmup_of_interleaved(layout, stage, micro_batches)) : 0;
    std::vector<int> left(static_cast<std::size_t>(layout.virtual_pipeline), micro_batches);  // backwards still to come
    for (std::size_t i = 0; i < order.size();) {
        const bool pair = pairs && i >= warmup && order[i].op == Op::kForward;
        const std::span<const Instruction> steps(&order[i], pair ? 2 : 1);
        for (const Instruction& step : steps) {
            if (receives_activation(stage, step))
                program.push_back({Op::kReceiveActivation, step.chunk, step.micro_batch});
            if (receives_gradient(layout, stage, step))
                program.push_back({Op::kReceiveGradient, step.chunk, step.micro_batch});
        }
        program.insert(program.end(), steps.begin(), steps.end());
        for (const Instruction& step : steps) {
            if (sends_activation(layout, stage, step))
                program.push_back({Op::kSendActivation, step.chunk, step.micro_batch});
            if (sends_gradient(stage, step)) program.push_back({Op::kSendGradient, step.chunk, step.micro_batch});
            if (completes_gradient(layout, step) && --left[static_cast<std::size_t>(step.chunk)] == 0 && replicated &&
                layout.overlap_grad_reduce)
                program.push_back(compute(Op::kReduceGradients, step.chunk, 0));
        }
        i += steps.size();
    }

    if (replicated && !layout.overlap_grad_reduce)
        for (int c = 0; c < layout.virtual_pipeline; ++c) program.push_back(compute(Op::kReduceGradients, c, 0));
    if (tied_embedding && layout.pipeline > 1 && (stage == 0 || stage == layout.pipeline - 1))
        program.push_back(compute(Op::kReduceTiedEmbedding, stage == 0 ? 0 : layout.virtual_pipeline - 1, 0));
    program.push_back(compute(Op::kOptimizerStep, 0, 0));
    if (gathers && !layout.overlap_param_gather)
        for (int c = 0; c < layout.virtual_pipeline; ++c) program.push_back(compute(Op::kGatherParameters, c, 0));
    return program;
}

std::vector<int> in_flight_at_peak(const Layout& layout, int stage, int micro_batches,
                                   std::span<const double> weights) {
    const auto chunks = static_cast<std::size_t>(layout.virtual_pipeline);
    if (!weights.empty() && weights.size() != chunks) throw std::invalid_argument("one weight a chunk");
    std::vector<int> held(chunks, 0);
    std::vector<int> peak(chunks, 0);
    double most = -1.0;
    for (const Instruction& step : compute_order(layout, stage, micro_batches)) {
        const auto chunk = static_cast<std::size_t>(step.chunk);
        if (step.op == Op::kForward) {
            ++held[chunk];
            double total = 0.0;
            for (std::size_t c = 0; c < chunks; ++c) total += held[c] * (weights.empty() ? 1.0 : weights[c]);
            if (total > most) {
                most = total;
                peak = held;
            }
        } else if (completes_gradient(layout, step)) {
            --held[chunk];
        }
    }
    return peak;
}

}  // namespace headway::scenarios
