#include "backend/training/plan_rank.h"

#include <cmath>
#include <stdexcept>
#include <string>

#include "backend/backend_error.h"
#include "scenarios/costs/parameters.h"

namespace headway::backend {

using scenarios::Instruction;
using scenarios::Op;

namespace {

std::vector<std::unique_ptr<Chunk>> chunks_of(const scenarios::Job& job, const scenarios::Plan& plan,
                                              const PlanPlace& place, Device& device, Communicator* tensor) {
    const scenarios::Layout& layout = plan.layout;
    std::vector<std::unique_ptr<Chunk>> chunks;
    int first_layer = 0;
    for (int k = 0; k < layout.virtual_stages(); ++k) {
        const int layers = plan.layers(place.replica, k);
        if (k % layout.pipeline == place.stage) {
            ChunkShape shape;
            shape.model = job.model;
            shape.layout = layout;
            shape.tensor_rank = place.tensor;
            shape.first_layer = first_layer;
            shape.layers = layers;
            shape.embeds = k == 0;
            shape.has_head = k == layout.virtual_stages() - 1;
            shape.micro_batch = job.micro_batch;
            shape.padded_vocab = scenarios::padded_vocabulary(job, layout);
            chunks.push_back(std::make_unique<Chunk>(device, shape, tensor));
        }
        first_layer += layers;
    }
    return chunks;
}

bool is_paced(Op op) {
    return scenarios::is_compute(op) || op == Op::kOptimizerStep;
}

}  // namespace

PlanRank::PlanRank(const scenarios::Job& job, const scenarios::Plan& plan, const PlanPlace& place,
                   const TrainingGroups& groups, Device& device, const TokenSource& tokens)
    : job_(job),
      place_(place),
      layout_(plan.layout),
      device_(device),
      loss_counts_(place.tensor == 0),
      chunks_(chunks_of(job, plan, place, device, groups.tensor())),
      held_(job, plan, place, groups, device, chunks_),
      gradients_(device, job.model, plan.layout, held_, groups),
      parameters_(device, job.model, plan.layout, held_),
      optimizer_(device, job, plan.layout, held_, gradients_, groups.world()),
      samples_(job, plan, place.replica, device, tokens),
      messages_(device, groups, plan.layout, place.stage, chunks_.front()->shape().activation_rows(), job.model.hidden),
      clock_(device) {
    share(plan);
}

void PlanRank::share(const scenarios::Plan& plan) {
    micro_batches_ = plan.micro_batches_of_replica[static_cast<std::size_t>(place_.replica)];
    program_ = scenarios::make_program(plan.layout, job_.model.tied_embedding, place_.stage, micro_batches_);
    samples_.share(plan, place_.replica);
}

void PlanRank::initialise(std::uint64_t seed) {
    for (const StateSlice& slice : held_.state()) {
        const std::vector<float> values = initial_weights(job_, slice.block, slice.elements, seed);
        if (slice.master.type == DataType::kFloat64) {
            const std::vector<double> wide(values.begin(), values.end());
            device_.from_host(wide.data(), slice.master);
        } else {
            device_.from_host(values.data(), slice.master);
        }
        device_.operations().fill(slice.first_moment, 0.0);
        device_.operations().fill(slice.second_moment, 0.0);
    }
    state_changed();
}

void PlanRank::state_changed() {
    if (!held_.sharded()) {
        parameters_.refresh();
        return;
    }
    if (layout_.overlap_param_gather) return;  // the next program begins with it
    parameters_.begin();
    for (int c = 0; c < chunk_count(); ++c) parameters_.gather(c);
    for (int c = 0; c < chunk_count(); ++c) parameters_.finish(c, clock_);
}

StepResult PlanRank::step(std::int64_t step, std::uint64_t seed, Pace* pace) {
    StepResult result;
    const Mark begin = device_.mark();
    parameters_.begin();
    samples_.begin(step, seed);
    backwards_left_.assign(chunks_.size(), micro_batches_);
    for (std::size_t at = 0; at < program_.size();) {
        std::size_t end = at + 1;
        while (end < program_.size() && program_[end].batched) ++end;
        const std::span<const Instruction> batch(&program_[at], end - at);
        clock_.begin(batch);
        if (scenarios::is_message(batch.front().op)) {
            messages_.issue(batch, clock_);
        } else {
            execute(batch.front(), step, result);
            if (pace != nullptr && is_paced(batch.front().op)) clock_.keep_pace(*pace);
        }
        clock_.end();
        at = end;
    }
    const Mark end = device_.mark();
    result.begin = device_.time_of(begin);
    result.end = device_.time_of(end);
    result.instructions = clock_.take();
    return result;
}

void PlanRank::execute(const Instruction& instruction, std::int64_t step, StepResult& result) {
    switch (instruction.op) {
        case Op::kForward:
            return forward(instruction);
        case Op::kBackward:
        case Op::kBackwardInput:
            return backward(instruction);
        case Op::kBackwardWeight:
            chunk(instruction.chunk).backward_weight(instruction.micro_batch);
            count_tensor_communication(chunk(instruction.chunk));
            return complete(instruction);
        case Op::kReduceGradients:
            clock_.add_bytes(gradients_.reduce(instruction.chunk));
            if (!layout_.overlap_grad_reduce) gradients_.finish(clock_);
            return;
        case Op::kReduceTiedEmbedding:
            return clock_.add_bytes(gradients_.reduce_tied(clock_));
        case Op::kOptimizerStep:
            return optimizer_step(step, result);
        case Op::kGatherParameters:
            clock_.add_bytes(parameters_.gather(instruction.chunk));
            if (!layout_.overlap_param_gather) parameters_.finish(instruction.chunk, clock_);
            return;
        case Op::kSendActivation:
        case Op::kReceiveActivation:
        case Op::kSendGradient:
        case Op::kReceiveGradient:
            break;
    }
    throw std::logic_error("not an instruction of its own");
}

void PlanRank::forward(const Instruction& instruction) {
    const int c = instruction.chunk, micro_batch = instruction.micro_batch;
    const ChunkShape& shape = chunk(c).shape();
    if (layout_.overlap_param_gather) parameters_.finish(c, clock_);
    Tensor input, targets, output;
    if (shape.embeds || shape.has_head) {
        const Tensor tokens = samples_.read(micro_batch);
        if (shape.embeds) input = tokens.row_range(0, 1);
        if (shape.has_head) targets = tokens.row_range(1, 1);
    }
    if (!shape.embeds) input = messages_.incoming(Flow::kActivation, c, micro_batch, clock_);
    if (!shape.has_head) output = messages_.outgoing(Flow::kActivation, c, micro_batch);
    const double loss_scale = 1.0 / static_cast<double>(job_.tokens_per_iteration());
    chunk(c).forward(micro_batch, input, targets, loss_scale, output);
    count_tensor_communication(chunk(c));
    messages_.release(Flow::kActivation, c, micro_batch);  // the chunk keeps what it needs
    samples_.release(micro_batch);
}

void PlanRank::backward(const Instruction& instruction) {
    const int c = instruction.chunk, micro_batch = instruction.micro_batch;
    const ChunkShape& shape = chunk(c).shape();
    Tensor output_gradient, input_gradient;
    if (!shape.has_head) output_gradient = messages_.incoming(Flow::kGradient, c, micro_batch, clock_);
    if (!shape.embeds) input_gradient = messages_.outgoing(Flow::kGradient, c, micro_batch);
    const bool whole = instruction.op == Op::kBackward;
    if (whole)
        chunk(c).backward(micro_batch, output_gradient, input_gradient);
    else
        chunk(c).backward_input(micro_batch, output_gradient, input_gradient);
    count_tensor_communication(chunk(c));
    messages_.release(Flow::kGradient, c, micro_batch);
    if (whole) complete(instruction);
}

void PlanRank::complete(const Instruction& instruction) {
    if (--backwards_left_[static_cast<std::size_t>(instruction.chunk)] == 0)
        gradients_.sum_shares(instruction.chunk, clock_);
}

void PlanRank::optimizer_step(std::int64_t step, StepResult& result) {
    messages_.finish(clock_);
    gradients_.finish(clock_);
    double loss = 0.0;
    if (chunks_.back()->shape().has_head) {
        const double sum = chunks_.back()->take_loss();  // also where it does not count: it begins anew
        if (loss_counts_) loss = sum;
    }
    const Optimizer::Totals totals = optimizer_.totals(loss, clock_);
    result.loss = totals.loss / static_cast<double>(job_.tokens_per_iteration());
    result.gradient_norm = totals.gradient_norm;
    if (!std::isfinite(totals.gradient_norm))
        throw BackendError("step " + std::to_string(step), "training diverged: the norm of the gradient is " +
                                                               std::to_string(totals.gradient_norm) + " at a loss of " +
                                                               std::to_string(result.loss));
    optimizer_.update(step, totals.gradient_norm);
    if (!held_.sharded()) parameters_.refresh();
    gradients_.clear();
}

void PlanRank::count_tensor_communication(Chunk& chunk) {
    if (layout_.tensor > 1) clock_.add_exposed(chunk.take_exposed_communication());
}

}  // namespace headway::backend
