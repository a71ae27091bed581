#include "scenarios/record/plan_lines.h"

#include "scenarios/record/record_lines.h"

namespace headway::scenarios {

namespace {

/// One split where all replicas share it, as nearly always; else one a replica.
std::vector<int> compact_layers(const Plan& plan) {
    if (!plan.same_layers_everywhere()) return plan.layers_of_cell;
    const auto stages = static_cast<std::ptrdiff_t>(plan.layout.virtual_stages());
    return {plan.layers_of_cell.begin(), plan.layers_of_cell.begin() + stages};
}

}  // namespace

void write_plan(JsonText& json, const Plan& plan) {
    const Layout& layout = plan.layout;
    json.begin_object()
        .field("tensor", layout.tensor)
        .field("pipeline", layout.pipeline)
        .field("data", layout.data)
        .field("context", layout.context)
        .field("virtual_pipeline", layout.virtual_pipeline)
        .field("sequence_parallel", layout.sequence_parallel)
        .field("schedule", record_name(layout.schedule))
        .field("zero_bubble_memory", layout.zero_bubble_memory)
        .field("recompute", record_name(layout.recompute))
        .field("distributed_optimizer", layout.distributed_optimizer)
        .field("overlap_grad_reduce", layout.overlap_grad_reduce)
        .field("overlap_param_gather", layout.overlap_param_gather)
        .field("overlap_tensor_comm", layout.overlap_tensor_comm)
        .field("overlap_pipeline_comm", layout.overlap_pipeline_comm)
        .field("gpu_of_rank", plan.gpu_of_rank)
        .field("layers_of_virtual_stage", compact_layers(plan))
        .field("micro_batches_of_replica", plan.micro_batches_of_replica)
        .end_object();
}

}  // namespace headway::scenarios
