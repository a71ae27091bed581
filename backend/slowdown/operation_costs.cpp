#include "backend/slowdown/operation_costs.h"

namespace headway::backend {

namespace {

scenarios::Work without_communication(scenarios::Work work) {
    work.communication = scenarios::Duration();
    return work;
}

}  // namespace

OperationCosts::OperationCosts(const scenarios::IterationCosts& costs, const scenarios::Cluster& cluster,
                               const scenarios::Plan& plan, int rank) {
    const scenarios::Layout& layout = plan.layout;
    const int worker = rank / layout.ranks_per_worker();
    const int replica = worker % layout.data, stage = worker / layout.data;
    const int gpu = plan.gpu_of_rank.at(static_cast<std::size_t>(rank));
    const int type = scenarios::gpu_type_index(cluster, gpu);
    const scenarios::GpuScale scale =
        costs.gpu_scales.empty() ? scenarios::GpuScale{} : costs.gpu_scales[static_cast<std::size_t>(gpu)];
    micro_batches_ = plan.micro_batches_of_replica[static_cast<std::size_t>(replica)];
    optimizer_ = costs.stages[static_cast<std::size_t>(stage)].optimizer;
    for (int chunk = 0; chunk < layout.virtual_pipeline; ++chunk) {
        const scenarios::VirtualStageCosts& of_chunk = costs.of(type, layout, replica, chunk * layout.pipeline + stage);
        chunks_.push_back({without_communication(of_chunk.forward.scaled(scale.forward)),
                           without_communication(of_chunk.backward.scaled(scale.backward)),
                           without_communication(of_chunk.backward_input.scaled(scale.backward)),
                           without_communication(of_chunk.backward_weight.scaled(scale.backward))});
        optimizer_ += of_chunk.optimizer;
    }
    optimizer_ = without_communication(optimizer_);
}

const scenarios::Work& OperationCosts::of(const scenarios::Instruction& instruction) const {
    const Chunk& chunk = chunks_.at(static_cast<std::size_t>(instruction.chunk));
    switch (instruction.op) {
        case scenarios::Op::kForward:
            return chunk.forward;
        case scenarios::Op::kBackward:
            return chunk.backward;
        case scenarios::Op::kBackwardInput:
            return chunk.backward_input;
        case scenarios::Op::kBackwardWeight:
            return chunk.backward_weight;
        case scenarios::Op::kOptimizerStep:
            return optimizer_;
        default:
            return nothing_;
    }
}

scenarios::Duration OperationCosts::compute() const {
    scenarios::Duration sum = optimizer_.total();
    for (const Chunk& chunk : chunks_) sum += (chunk.forward.total() + chunk.backward.total()) * micro_batches_;
    return sum;
}

}  // namespace headway::backend
