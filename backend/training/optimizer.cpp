#include "backend/training/optimizer.h"

#include <cmath>

#include "backend/training/recipe.h"

namespace headway::backend {

Optimizer::Optimizer(Device& device, const scenarios::Job& job, const scenarios::Layout& layout, HeldBlocks& blocks,
                     const GradientReduction& gradients, Communicator& world)
    : device_(device),
      model_(job.model),
      training_(job.training.value_or(scenarios::Training())),
      tensor_degree_(layout.tensor),
      held_(blocks),
      gradients_(gradients),
      world_(world),
      totals_(device.allocate(DataType::kFloat64, 2)) {}

Optimizer::Totals Optimizer::totals(double loss, InstructionClock& clock) {
    const Tensor totals = totals_.tensor(DataType::kFloat64, 1, 2);
    double values[2] = {0.0, loss};
    device_.from_host(values, totals);
    for (std::size_t i = 0; i < held_.blocks().size(); ++i) {
        const HeldBlock& held = held_.blocks()[i];
        if (held.counted && !held.owned.empty())
            device_.operations().sum_of_squares(gradients_.own_part(i), totals.elements(0, 1));
    }
    const std::unique_ptr<Work> work = world_.all_reduce(totals, ReduceOperation::kSum);
    clock.wait(*work);
    device_.to_host(totals, values);
    return {values[1], std::sqrt(values[0])};
}

void Optimizer::update(std::int64_t step, double gradient_norm) {
    AdamW settings;
    settings.learning_rate = learning_rate(training_, step);
    settings.beta1 = training_.beta1;
    settings.beta2 = training_.beta2;
    settings.epsilon = training_.epsilon;
    settings.gradient_scale = clipping_scale(training_.clip_gradient_norm, gradient_norm);
    settings.step = step + 1;
    for (std::size_t i = 0; i < held_.blocks().size(); ++i) {
        const HeldBlock& held = held_.blocks()[i];
        if (held.state == nullptr) continue;
        Tensor gradient = gradients_.own_part(i);
        Buffer ordered;
        if (!held_.sharded() && held.reorders()) {
            ordered = device_.allocate(device_.accumulation_type(), held.held.size());
            gradient = ordered.tensor(device_.accumulation_type(), 1, held.held.size());
            kernel_to_block_order(device_, model_, tensor_degree_, held.block.kind, held.gradients, gradient);
        }
        const auto apply = [&](std::int64_t first, std::int64_t count, bool decayed) {
            settings.weight_decay = decayed ? training_.weight_decay : 0.0;
            device_.operations().adamw(
                settings, gradient.elements(first, count), held.state->master.elements(first, count),
                held.state->first_moment.elements(first, count), held.state->second_moment.elements(first, count));
        };
        if (training_.weight_decay == 0.0) {
            apply(0, held.owned.size(), false);
            continue;
        }
        for (const DecayRun& run : decay_runs(model_, held.block.kind, held.owned))
            apply(run.elements.begin - held.owned.begin, run.elements.size(), run.decayed);
    }
}

}  // namespace headway::backend
