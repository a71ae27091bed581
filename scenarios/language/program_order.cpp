#include "scenarios/language/program.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace headway::scenarios {

namespace {

void check_schedule(const Layout& layout, int stage, int micro_batches) {
    if (layout.pipeline < 1 || layout.virtual_pipeline < 1)
        throw std::invalid_argument("pipeline degrees are at least 1");
    if (stage < 0 || stage >= layout.pipeline)
        throw std::invalid_argument("stage " + std::to_string(stage) + " of a pipeline of " +
                                    std::to_string(layout.pipeline));
    if (micro_batches < 1) throw std::invalid_argument("a replica needs at least one micro-batch");
    if (layout.zero_bubble_memory != 1 && layout.zero_bubble_memory != 2)
        throw std::invalid_argument("zero_bubble_memory is 1 or 2");
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

Instruction pass(Op op, int chunk, int micro_batch) {
    return {op, static_cast<std::int16_t>(chunk), false, static_cast<std::int32_t>(micro_batch)};
}

Program gpipe_order(int micro_batches) {
    Program order;
    for (int i = 0; i < micro_batches; ++i) order.push_back(pass(Op::kForward, 0, i));
    for (int i = 0; i < micro_batches; ++i) order.push_back(pass(Op::kBackward, 0, i));
    return order;
}

Program one_forward_one_backward_order(int pipeline, int stage, int micro_batches) {
    const int warmup = std::min(pipeline - stage - 1, micro_batches);
    Program order;
    for (int i = 0; i < warmup; ++i) order.push_back(pass(Op::kForward, 0, i));
    for (int i = 0; i < micro_batches; ++i) {
        if (warmup + i < micro_batches) order.push_back(pass(Op::kForward, 0, warmup + i));
        order.push_back(pass(Op::kBackward, 0, i));
    }
    return order;
}

/// ZB-H1: 1F1B with a split backward; the weight gradient of micro-batch i waits until the stage has done `stage` more
/// input gradients, which fill the bubble at the end. No stage holds more than the first one does under 1F1B.
Program zero_bubble_h1_order(int pipeline, int stage, int micro_batches) {
    const int warmup = std::min(pipeline - stage - 1, micro_batches);
    Program order;
    for (int i = 0; i < warmup; ++i) order.push_back(pass(Op::kForward, 0, i));
    for (int i = 0; i < micro_batches; ++i) {
        if (warmup + i < micro_batches) order.push_back(pass(Op::kForward, 0, warmup + i));
        order.push_back(pass(Op::kBackwardInput, 0, i));
        if (i >= stage) order.push_back(pass(Op::kBackwardWeight, 0, i - stage));
    }
    for (int i = std::max(0, micro_batches - stage); i < micro_batches; ++i)
        order.push_back(pass(Op::kBackwardWeight, 0, i));
    return order;
}

/// Zero-bubble with twice the memory: 2 (p - s) - 1 forwards before the first backward; a weight gradient is done when
/// the next forward would hold more than 2p micro-batches, and after the last forward one follows each input gradient.
Program zero_bubble_2p_order(int pipeline, int stage, int micro_batches) {
    const int warmup = std::min(2 * (pipeline - stage) - 1, micro_batches);
    int forwards = warmup, weights = 0;
    Program order;
    for (int i = 0; i < warmup; ++i) order.push_back(pass(Op::kForward, 0, i));
    for (int i = 0; i < micro_batches; ++i) {
        order.push_back(pass(Op::kBackwardInput, 0, i));
        if (forwards == micro_batches || forwards - weights >= 2 * pipeline)
            order.push_back(pass(Op::kBackwardWeight, 0, weights++));
        if (forwards < micro_batches) order.push_back(pass(Op::kForward, 0, forwards++));
    }
    while (weights < micro_batches) order.push_back(pass(Op::kBackwardWeight, 0, weights++));
    return order;
}

/// Position `k` of the stage's forwards (or backwards) stands for a chunk and a micro-batch: `pipeline` micro-batches
/// go through chunk 0, the same ones through chunk 1, and so on; backwards start from the last chunk.
Program interleaved_order(const Layout& layout, int stage, int micro_batches) {
    const int p = layout.pipeline;
    const int v = layout.virtual_pipeline;
    const int total = micro_batches * v;
    const int warmup = warmup_forwards(layout, stage, micro_batches);
    const auto micro_batch = [&](int k) { return k / (p * v) * p + k % p; };
    const auto chunk = [&](int k) { return k % (p * v) / p; };
    Program order;
    for (int k = 0; k < warmup; ++k) order.push_back(pass(Op::kForward, chunk(k), micro_batch(k)));
    for (int k = 0; k < total; ++k) {
        if (warmup + k < total) order.push_back(pass(Op::kForward, chunk(warmup + k), micro_batch(warmup + k)));
        order.push_back(pass(Op::kBackward, v - 1 - chunk(k), micro_batch(k)));
    }
    return order;
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

int warmup_forwards(const Layout& layout, int stage, int micro_batches) {
    const int p = layout.pipeline, v = layout.virtual_pipeline, total = micro_batches * v;
    switch (layout.schedule) {
        case Schedule::kGPipe:
            return total;
        case Schedule::kOneForwardOneBackward:
            break;
        case Schedule::kInterleaved:
            if (v == 1) break;
            // Megatron-LM, schedules.py: with exactly as many micro-batches as stages every forward comes first.
            return micro_batches == p ? total : std::min((p - stage - 1) * 2 + (v - 1) * p, total);
        case Schedule::kZeroBubble:
            if (layout.zero_bubble_memory == 2) return std::min(2 * (p - stage) - 1, total);
            break;
    }
    return std::min(p - stage - 1, total);
}

Program compute_order(const Layout& layout, int stage, int micro_batches) {
    check_schedule(layout, stage, micro_batches);
    switch (layout.schedule) {
        case Schedule::kGPipe:
            return gpipe_order(micro_batches);
        case Schedule::kOneForwardOneBackward:
            return one_forward_one_backward_order(layout.pipeline, stage, micro_batches);
        case Schedule::kInterleaved:
            if (layout.virtual_pipeline > 1) return interleaved_order(layout, stage, micro_batches);
            return one_forward_one_backward_order(layout.pipeline, stage, micro_batches);
        case Schedule::kZeroBubble:
            if (layout.zero_bubble_memory == 1) return zero_bubble_h1_order(layout.pipeline, stage, micro_batches);
            return zero_bubble_2p_order(layout.pipeline, stage, micro_batches);
    }
    throw std::invalid_argument("not a schedule");
}

std::vector<int> in_flight_at_peak(const Layout& layout, int stage, int micro_batches,
                                   std::span<const double> weights) {
    const auto chunks = static_cast<std::size_t>(layout.virtual_pipeline);
    if (!weights.empty() && weights.size() != chunks) throw std::invalid_argument("one weight a chunk");
    const Op complete = layout.schedule == Schedule::kZeroBubble ? Op::kBackwardWeight : Op::kBackward;
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
        } else if (step.op == complete) {
            --held[chunk];
        }
    }
    return peak;
}

}  // namespace headway::scenarios
